package action_test

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema/action"
)

func TestWhereADeletedPathIs(t *testing.T) {
	for script, want := range map[string]string{
		`rm a`:                            "inside",
		`rm -rf ./a/b/../c`:               "inside",
		`rm *`:                            "inside",
		`rm -r a/*.log`:                   "inside",
		`rm -rf build/.[!.]*`:             "inside, git",
		`rm .gitignore`:                   "inside",
		`rm -rf .git`:                     "inside, git",
		`rm -rf sub/.git/hooks`:           "inside, git",
		`rm -rf .*`:                       "git",
		`rm -rf .g*`:                      "inside, git",
		`rm -rf .`:                        "",
		`rm -rf ""/work`:                  "",
		`rm -rf ../work`:                  "",
		`rm -rf ../other`:                 "",
		`rm -rf /`:                        "",
		`rm -rf ~/x`:                      "",
		`rm -rf $HOME`:                    "",
		`rm -rf "$UNKNOWN"`:               "",
		`rm -rf "a/$UNKNOWN"`:             "",
		`d=build; rm -rf "$d"`:            "inside",
		`cd sub && rm x`:                  "inside",
		`cd "$x" && rm y`:                 "",
		`find . -delete`:                  "",
		`find . -name '*.pyc' -delete`:    "inside",
		`find . -name '.git*' -delete`:    "inside, git",
		`find . -name '*' -delete`:        "inside, git",
		`find . -name x -o -true -delete`: "",
		`find . ! -name x -delete`:        "",
		`find / -name x -delete`:          "",
		`find . -name a -exec rm {} +`:    "inside",
		`ssh h rm /work/a`:                "",
	} {
		got, deleted := "", 0
		for _, p := range action.Script(script, "/work").Paths {
			if p.Access != action.DeleteAccess {
				continue
			}
			deleted++
			if p.Inside {
				got = "inside"
			}
			if p.Git && got != "" {
				got += ", "
			}
			if p.Git {
				got += "git"
			}
		}
		if deleted == 0 || got != want {
			t.Errorf("%s: %d paths, %q; want %q", script, deleted, got, want)
		}
	}
	for _, p := range action.Script("rm a", "").Paths {
		if p.Inside {
			t.Error("in an unknown folder a path counts as inside")
		}
	}
}

package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

const script = "#!/bin/sh\n"

func TestProgramsAreFoundInTheHookFoldersThenInPath(t *testing.T) {
	root := runnertest.Tree(t, map[string]string{
		"a/policies/shell.sh*": script, "a/both.sh*": script, "b/both.sh*": script, "b/second.sh*": script,
		"bin/tool*": script, "bin/both.sh*": script, "bin/python3*": script, "a/tool/x": "",
		"a/plain.py": "print()", "a/ready.py*": "#!/usr/bin/env python3\n", "a/no-line.py*": "print()", "a/no-line.sh*": "exit 0\n",
		"a/machine*": "\x7fELF\x00",
	})
	in := func(name string) string { return filepath.Join(root, name) }
	for handler, want := range map[string][]string{
		"./policies/shell.sh": {in("a/policies/shell.sh")},
		"policies/shell.sh":   {in("a/policies/shell.sh")},
		"both.sh":             {in("a/both.sh")},
		"second.sh":           {in("b/second.sh")},
		"../b/second.sh":      {in("b/second.sh")},
		"tool":                {in("bin/tool")}, // not the folder of that name
		in("b/both.sh"):       {in("b/both.sh")},
		"plain.py":            {in("bin/python3"), in("a/plain.py")},
		"ready.py":            {in("a/ready.py")},
		"no-line.py":          {in("bin/python3"), in("a/no-line.py")},
		"no-line.sh":          {"/bin/sh", in("a/no-line.sh")},
		"machine":             {in("a/machine")},
	} {
		l := newLookup([]string{in("a"), in("b")}, "relative:"+in("bin")+":/no/such/folder")
		got, err := l.argv(schema.Hook{Handler: handler, Args: []string{"-x"}})
		if err != nil {
			t.Errorf("%s: %v", handler, err)
		} else if diff := cmp.Diff(append(want, "-x"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", handler, diff)
		}
	}
}

func TestLoadErrorsOfPrograms(t *testing.T) {
	root := runnertest.Tree(t, map[string]string{
		"a/plain.sh": script, "bin/plain.sh*": script, "a/dir/x": "", "a/empty.sh*": "", "a/windows.sh*": "#!/bin/sh\r\nexit 0\r\n",
		"a/strange.sh*": "#!/no/such/shell\n", "a/env.sh*": "#!/usr/bin/env no-such-thing\n", "a/snake.py": "print()", "a/none.sh*": "#!\n",
	})
	for name, c := range map[string]struct {
		hook schema.Hook
		want []string
	}{
		"nothing":            {schema.Hook{Handler: " "}, []string{"names no program"}},
		"missing":            {schema.Hook{Handler: "gone.sh"}, []string{`"gone.sh"`, "/a/gone.sh (not there)", "/b/gone.sh (not there)", "/bin/gone.sh (not there)"}},
		"missing with slash": {schema.Hook{Handler: "./gone.sh"}, []string{"/a/gone.sh (not there)", "/b/gone.sh (not there); "}},
		"missing absolute":   {schema.Hook{Handler: "/no/such/program"}, []string{"there is no program at /no/such/program"}},
		"a directory":        {schema.Hook{Handler: "dir"}, []string{"/a/dir (a directory)"}},
		"absolute directory": {schema.Hook{Handler: "/tmp"}, []string{"/tmp is a directory"}},
		"not executable, though PATH has another of its name": {schema.Hook{Handler: "plain.sh"}, []string{"/a/plain.sh is not executable", "chmod +x"}},
		"a line of shell":        {schema.Hook{Handler: "gone.sh --strict"}, []string{"args: [...]", "shell: true"}},
		"empty":                  {schema.Hook{Handler: "empty.sh"}, []string{"is empty"}},
		"Windows line ends":      {schema.Hook{Handler: "windows.sh"}, []string{"Windows line ends"}},
		"unknown interpreter":    {schema.Hook{Handler: "strange.sh"}, []string{"/no/such/shell"}},
		"no interpreter":         {schema.Hook{Handler: "none.sh"}, []string{"empty #! line"}},
		"unknown to env":         {schema.Hook{Handler: "env.sh"}, []string{"no-such-thing", "PATH"}},
		"python without python3": {schema.Hook{Handler: "snake.py"}, []string{"runs under python3", "PATH"}},
		"NUL byte":               {schema.Hook{Handler: "x", Args: []string{"a\x00b"}}, []string{"NUL byte"}},
		"a variable with value":  {schema.Hook{Handler: "plain.sh", Env: []string{"TOKEN=1"}}, []string{`"TOKEN=1"`, "names only"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{Environ: []string{"PATH=" + filepath.Join(root, "bin")}})
			defer r.Close()
			_, err := r.Load(c.hook, workers.Site{Dirs: []string{filepath.Join(root, "a"), filepath.Join(root, "b")}})
			if err == nil {
				t.Fatal("it loaded")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestWithoutFoldersOnlyPathIsSearched(t *testing.T) {
	r := New(Options{Environ: []string{"PATH=/bin:/usr/bin"}})
	defer r.Close()
	if _, err := r.Load(schema.Hook{Handler: "true"}, workers.Site{}); err != nil {
		t.Error(err)
	}
	if _, err := r.Load(schema.Hook{Handler: "./true"}, workers.Site{}); err == nil || !strings.Contains(err.Error(), "no folder to look in") {
		t.Errorf("error %v", err)
	}
}

func TestProgramsRunInTheFirstExistingFolder(t *testing.T) {
	root := runnertest.Tree(t, map[string]string{"hooks/pwd.sh*": "#!/bin/sh\npwd -P >&2\nexit 2\n"})
	dir, err := filepath.EvalSymlinks(filepath.Join(root, "hooks"))
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{})
	defer r.Close()
	h, err := r.Load(schema.Hook{Handler: "pwd.sh"}, workers.Site{Dirs: []string{filepath.Join(root, "gone"), dir}})
	if err != nil {
		t.Fatal(err)
	}
	e := harmless()
	e.Cwd = root
	got, err := h.Handle(t.Context(), e)
	if err != nil || got.Reason != dir {
		t.Errorf("ran in %q, error %v", got.Reason, err)
	}
}

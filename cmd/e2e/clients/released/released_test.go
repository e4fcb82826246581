package released

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestWhetherNpmCouldTalkToAnybody(t *testing.T) {
	for _, c := range []struct {
		said string
		want bool
	}{
		{"npm warn something\nnpm error code ENOTFOUND\nnpm error syscall getaddrinfo", true},
		{"npm ERR! code ECONNREFUSED\n", true},
		{"npm error code E503\nnpm error 503 Service Unavailable", true},
		{"npm error code E404\nnpm error 404 Not Found", false},
		{"npm error code ETARGET\nnpm error notarget No matching version found", false},
		{"npm error code ENOSPC", false},
		{"", false},
	} {
		if got := unreachable(c.said); got != c.want {
			t.Errorf("of %q it says %v", c.said, got)
		}
	}
}

func TestNamed(t *testing.T) {
	got, err := Named("gemini", "claude")
	if err != nil || len(got) != 2 || got[0].Name != "gemini" || got[1].Name != "claude" {
		t.Errorf("it finds %v, %v", got, err)
	}
	if _, err := Named("claude", "emacs"); err == nil {
		t.Error("it accepts an unknown client")
	}
}

// TestThePageNamesTheReleasesThatAreTried checks that the page names each release by its
// whole version, or by its first two numbers.
func TestThePageNamesTheReleasesThatAreTried(t *testing.T) {
	page, err := os.ReadFile("../../../agentshim/RUNTIMES.md")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "copilot": "Copilot CLI", "qwen": "Qwen Code", "opencode": "OpenCode"}
	for _, c := range All() {
		pattern := regexp.QuoteMeta(labels[c.Name]) + ` (\d+\.\d+(?:\.\d+)?)`
		for _, named := range regexp.MustCompile(`The answers to .*?`+pattern).FindAllSubmatch(page, -1) {
			if got := string(named[1]); got != c.Version && !strings.HasPrefix(c.Version, got+".") {
				t.Errorf("RUNTIMES.md names %s %s, and the tests try %s", labels[c.Name], got, c.Version)
			}
			delete(labels, c.Name)
		}
	}
	if len(labels) > 0 {
		t.Errorf("RUNTIMES.md names no release of %v", labels)
	}
}

// TestFetchKeepsExistingFiles would fail without npm, and where npm ran.
func TestFetchKeepsExistingFiles(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	c := All()[0]
	if _, err := c.Command(); err == nil {
		t.Fatal("it is there before it was fetched")
	}
	if err := c.Fetch(t.Context()); err == nil {
		t.Fatal("it was fetched without npm")
	}
	dir, err := c.Dir()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, c.Name), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Fetch(t.Context()); err != nil {
		t.Error(err)
	}
}

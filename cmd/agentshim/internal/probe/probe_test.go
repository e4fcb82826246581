//go:build unix

package probe_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
)

func TestVersionsAreRead(t *testing.T) {
	for text, want := range map[string]probe.Version{
		"2.1.329 (Claude Code)": {2, 1, 329}, "codex-cli 0.169.0\n": {0, 169, 0}, "0.61.0": {0, 61, 0}, "v10.20.30-rc.1": {10, 20, 30},
		"": {}, "none": {}, "1.2": {}, "0.0.0": {}, "99999999999.1.1": {}, // a number that is too long
	} {
		got, ok := probe.ParseVersion(text)
		if want == (probe.Version{}) && text == "99999999999.1.1" {
			continue // any result is valid, as long as nothing panics
		}
		if got != want || ok != want.Known() {
			t.Errorf("%q is %v, %v", text, got, ok)
		}
	}
	ordered := []probe.Version{{}, {0, 0, 1}, {0, 1, 0}, {0, 1, 2}, {1, 0, 0}, {2, 1, 294}, {2, 1, 295}}
	for i, a := range ordered[1:] {
		if b := ordered[i]; !b.Before(a) || a.Before(b) || a.Before(a) {
			t.Errorf("%v and %v are out of order", b, a)
		}
	}
	if !(probe.Version{}).Before(probe.Version{}) {
		t.Error("an unknown version is as new as another")
	}
}

// script writes a shell script, and returns its path.
func script(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return path
}

func TestAProgramIsRun(t *testing.T) {
	r, err := probe.Run(t.Context(), probe.Command{Path: script(t, "cat; echo oh >&2; exit 3"), Stdin: []byte("in"), Timeout: time.Minute})
	if err != nil || r.Exit != 3 || string(r.Stdout) != "in" || string(r.Stderr) != "oh\n" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = probe.Run(t.Context(), probe.Command{Path: script(t, "head -c 3000000 /dev/zero"), Timeout: time.Minute})
	if err != nil || r.Exit != 0 || len(r.Stdout) != 1<<20 {
		t.Errorf("%d bytes, %v", len(r.Stdout), err)
	}
	if _, err := probe.Run(t.Context(), probe.Command{Path: "/nowhere/program", Timeout: time.Minute}); err == nil {
		t.Error("no program was run")
	}
	if v, err := probe.AskVersion(t.Context(), script(t, "echo 1.2.3")); err != nil || v != (probe.Version{1, 2, 3}) {
		t.Errorf("its version is %v", v)
	}
	for text, says := range map[string]string{"echo library missing >&2; exit 127": `exit code 127 and named no version: "library missing"`, "echo hello": `named no version: "hello"`} {
		if v, err := probe.AskVersion(t.Context(), script(t, text)); v.Known() || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
	if _, err := probe.AskVersion(t.Context(), "/nowhere/claude"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestAProgramThatHangsIsEndedWithItsChildren checks that no child stays behind: the child holds a
// pipe open, which closes when the child ends.
func TestAProgramThatHangsIsEndedWithItsChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(fifo) // when the child does
		cancel()
		if err == nil {
			_, err = io.ReadAll(f)
			_ = f.Close()
		}
		ended <- err
	}()
	_, err := probe.Run(ctx, probe.Command{Path: script(t, "(exec 3>"+fifo+"; exec sleep 1000) &\nwait"), Timeout: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("error %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_, err = probe.Run(t.Context(), probe.Command{Path: script(t, "sleep 1000"), Timeout: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "did not end within") {
		t.Errorf("error %v", err)
	}
}

// codexPlay answers as `codex app-server` does.
const codexPlay = `read -r hello; echo '{"id":1,"result":{}}'; echo '{"method":"noise","params":{}}'
read -r initialized
read -r list; echo "$list" >>"$PLAY"; echo '{"id":2,"result":{"data":[{"hooks":[
{"key":"k:pre:0:0","eventName":"preToolUse","command":"/opt/agentshim hook","enabled":true,"currentHash":"sha256:1","trustStatus":"untrusted"},
{"key":"k:stop:0:0","eventName":"stop","command":"other","enabled":true,"currentHash":"sha256:2","trustStatus":"untrusted"},
{"key":"k:end:0:0","eventName":"sessionEnd","command":"/opt/agentshim hook","enabled":true,"currentHash":"sha256:3","trustStatus":"managed"}]}]}}' | tr -d '\n'; echo
read -r write && { echo "$write" >>"$PLAY"; echo '{"id":3,"result":{"status":"ok"}}'; }
`

func TestCodexIsAskedToTrust(t *testing.T) {
	program := script(t, codexPlay)
	dir := filepath.Dir(program)
	if err := os.Rename(program, filepath.Join(dir, "codex")); err != nil {
		t.Fatal(err)
	}
	play := filepath.Join(dir, "play")
	t.Setenv("PLAY", play)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ours := func(h *probe.CodexHook) bool { return strings.HasPrefix(h.Command, "/opt/agentshim") }
	n, err := probe.TrustCodex(t.Context(), "/work", true, ours)
	if err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	said, err := os.ReadFile(play)
	want := `{"id":2,"method":"hooks/list","params":{"cwds":["/work"]}}
{"id":3,"method":"config/batchWrite","params":{"edits":[{"keyPath":"hooks.state.\"k:pre:0:0\"","value":{"trusted_hash":"sha256:1"},"mergeStrategy":"upsert"}]}}
`
	if diff := cmp.Diff(want, string(said)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	hooks, err := probe.CodexHooks(t.Context(), "/work")
	if err != nil || len(hooks) != 3 || hooks[0].Runs() || hooks[1].Runs() || !hooks[2].Runs() {
		t.Errorf("%+v, %v", hooks, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "codex"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	if _, err := probe.CodexHooks(t.Context(), "/work"); err == nil {
		t.Error("a codex that says nothing has hooks")
	}
}

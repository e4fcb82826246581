package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	// The bounds of the path of one tool call, a little over its present size. Lower them as it gets shorter; the goal
	// is 90 files and 3,000 lines.
	pathFiles = 205
	pathLines = 4700
	// doc.go lists files of which so many lines run.
	listedLines = 20
)

// TestThePathOfOneToolCall measures which code runs for one event, from the shim over the broker to a worker and
// back: what the programs run with an event beyond what they run without one. doc.go lists the most important files
// in the order in which a reader needs them.
func TestThePathOfOneToolCall(t *testing.T) {
	if !long() {
		t.Skip("THE PATH OF ONE TOOL CALL IS NOT MEASURED: that builds the programs with coverage; set HOOKFABRIC_LONG=1")
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-cover", "-coverpkg=./...", "-o", bin, "./cmd/broker", "./cmd/hookworker", "./cmd/agentshim")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build -cover: %v\n%s", err, out)
	}
	idle, called := executed(t, bin, false), executed(t, bin, true)
	maps.DeleteFunc(called, func(b string, _ block) bool { _, ok := idle[b]; return ok })

	lines := map[string]map[int]bool{}
	total := 0
	for _, b := range called {
		if lines[b.file] == nil {
			lines[b.file] = map[int]bool{}
		}
		for l := b.first; l <= b.last; l++ {
			lines[b.file][l] = true
		}
	}
	packages := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		packages[path.Dir(file)] = true
		total += len(lines[file])
		t.Logf("%4d lines of %s", len(lines[file]), file)
	}
	t.Logf("one tool call runs %d lines in %d files of %d packages", total, len(lines), len(packages))
	if len(lines) > pathFiles || total > pathLines {
		t.Errorf("one tool call runs %d lines in %d files; want at most %d lines in %d files", total, len(lines), pathLines, pathFiles)
	}
	listed := listedPath(t)
	for file, run := range lines {
		if len(run) >= listedLines && !slices.Contains(listed, file) {
			t.Errorf("one tool call runs %d lines of %s; list it in the section 'One tool call' of doc.go", len(run), file)
		}
	}
	for _, file := range listed {
		if lines[file] == nil {
			t.Errorf("doc.go lists %s, but one tool call does not run it", file)
		}
	}
}

// A block is a part of a file that runs as a whole.
type block struct {
	file        string
	first, last int // lines
}

// executed runs the fabric, with one tool call or none, and returns the blocks that ran.
func executed(t *testing.T, bin string, call bool) map[string]block {
	t.Helper()
	dir, cover := t.TempDir(), t.TempDir()
	env := []string{"GOCOVERDIR=" + cover}
	write(t, dir, "hook.sh", "#!/bin/sh\necho '{\"decision\":\"deny\",\"reason\":\"because\"}'\n")
	config := write(t, dir, "hooks.yaml", "hooks:\n  PreToolUse:\n    - {name: judge, matcher: Bash, handler: ./hook.sh, pool: crew, fail_closed: true}\n")
	b := ready(t, startWith(t, env, filepath.Join(bin, "broker"), slices.Concat(anyPort, []string{"--data", t.TempDir(), "--config", config})...))
	w := startWith(t, env, filepath.Join(bin, "hookworker"), "--nats", b.url, "--name", "w1", "--pool", "crew", "--hooks", dir, "--http", "")
	awaitWorkers(t, connect(t, b.url), "w1")
	if call {
		c := exec.CommandContext(t.Context(), filepath.Join(bin, "agentshim"), "hook", "--runtime", "claude", "--nats", b.url, "--state", t.TempDir())
		c.Env = append(cleaned(c.Environ()), env...)
		c.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"}}`)
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "because") {
			t.Fatalf("agentshim: %s, %v", out, err)
		}
	}
	for _, p := range []*process{w, b.process} {
		p.must(t, syscall.SIGTERM)
		if code, err := p.wait(); code != 0 || err != nil {
			t.Fatalf("%s ended with %d, %v", p.name, code, err)
		}
	}
	return readCover(t, cover)
}

// readCover returns the blocks that ran, according to a folder of coverage files.
func readCover(t *testing.T, dir string) map[string]block {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	if out, err := exec.CommandContext(t.Context(), "go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile).CombinedOutput(); err != nil {
		t.Fatalf("go tool covdata: %v\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]block{}
	for line := range strings.Lines(string(text)) {
		file, rest, _ := strings.Cut(strings.TrimPrefix(line, "github.com/hookfabric/hookfabric/"), ":")
		b := block{file: file}
		var column, statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.first, &column, &b.last, &column, &statements, &count); err == nil && count > 0 {
			all[file+":"+strings.Fields(rest)[0]] = b
		}
	}
	return all
}

// listedPath returns the files that doc.go lists for one tool call. A line has a folder and names of files in it.
func listedPath(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n// # One tool call\n")
	section, _, _ = strings.Cut(section, "\n// # ")
	for line := range strings.Lines(section) {
		entry, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		folder, files, _ := strings.Cut(strings.TrimSpace(entry), ": ")
		for file := range strings.FieldsSeq(files) {
			all = append(all, path.Join(folder, file))
		}
	}
	return all
}

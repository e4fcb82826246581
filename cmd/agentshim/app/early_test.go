//go:build linux && (amd64 || arm64)

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
)

// told is what a daemon heard of one hook, and whether it heard that its answer
// was written.
type told struct {
	words   map[string]string
	body    string
	id      string
	written bool
}

// play is a daemon that says what it is told to say, to one hook after the other.
func play(t *testing.T, socket string, says func(c net.Conn)) <-chan told {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	heard := make(chan told, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m, err := frame.Read(c, frame.MaxRequest)
			if err != nil {
				c.Close() // it never asked
				continue
			}
			h := told{words: maps.Clone(m.Words), body: string(m.Body), id: m.Words["id"]}
			delete(h.words, "id")
			delete(h.words, "left")
			says(c)
			last, err := frame.Read(c, frame.MaxRequest)
			h.written = err == nil && last.Kind == frame.Written
			c.Close()
			heard <- h
		}
	}()
	return heard
}

func answering(words map[string]string, body string) func(net.Conn) {
	return func(c net.Conn) {
		_ = frame.Write(c, &frame.Message{Kind: frame.Beat})
		_ = frame.Write(c, &frame.Message{Kind: frame.Answer, Words: words, Body: []byte(body)})
	}
}

// ran is how a hook ended.
type ran struct {
	Stdout, Stderr string
	Exit           int
}

// runHook runs one, early or not.
func runHook(t *testing.T, early bool, env []string, stdin *os.File, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Args = append([]string{"agentshim", "hook"}, args...)
	c.Env = append([]string{programVar + "=1", "PATH=" + os.Getenv("PATH")}, env...)
	if !early {
		c.Env = append(c.Env, "HOOKFABRIC_ANYTHING=else") // which only the program knows to mean nothing
	}
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = stdin, &stdout, &stderr
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return ran{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// Whether the daemon is asked before the program is initialised or by the
// program makes no difference to anybody.
func TestWhatIsDoneEarlyIsTheSame(t *testing.T) {
	const payload = `{"session_id":"s","prompt_id":"p","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"u"}`
	claude := []string{"--runtime", "claude", "--event", "PreToolUse"}
	deny := answering(map[string]string{"exit": "0"}, `{"permissionDecision":"deny"}`)
	for name, c := range map[string]struct {
		args, env []string
		stdin     string
		says      func(net.Conn)
		direct    bool // the daemon does not answer, and the fabric, which is not there, is asked
	}{
		"a deny":                {args: claude, stdin: payload, says: deny},
		"no opinion":            {args: claude, stdin: payload, says: answering(map[string]string{"exit": "0"}, "")},
		"words for people":      {args: claude, stdin: payload, says: answering(map[string]string{"exit": "2", "stderr": "no", "reason": "agentshim: careful\n"}, "")},
		"nothing on stdin":      {args: claude, says: deny},
		"a large answer":        {args: claude, stdin: payload, says: answering(map[string]string{"exit": "0"}, strings.Repeat("x", 3<<20))},
		"a large event":         {args: claude, stdin: payload + strings.Repeat(" ", 3<<20), says: deny},
		"flags":                 {args: append(claude, "--timeout=30s", "--agent", "alice", "--start", "--workspaces", "/tmp"), stdin: payload, says: deny},
		"a policy of one's own": {args: append(claude, "--unreachable", "allow", "--state", "/tmp"), stdin: payload, says: deny},
		"an environment": {args: claude, env: []string{"HOOKFABRIC_AGENT=bob", "HOOKFABRIC_NATS=nats://127.0.0.1:1", "HOOKFABRIC_CREDS=/tmp/none", "CODEX_HOME=/c",
			"GEMINI_API_KEY=secret"}, stdin: payload, says: deny},
		"another fabric": {args: append(claude, "--unreachable", "deny"), stdin: payload, direct: true, says: func(c net.Conn) {
			_ = frame.Write(c, &frame.Message{Kind: frame.Elsewhere, Words: map[string]string{"reason": "it is for another fabric"}})
		}},
		"a daemon that dies":  {args: append(claude, "--unreachable", "deny"), stdin: payload, direct: true, says: func(c net.Conn) { c.Close() }},
		"a daemon that hangs": {args: append(claude, "--unreachable", "deny", "--timeout", "1500ms"), stdin: payload, direct: true, says: func(net.Conn) {}},
		"junk":                {args: append(claude, "--unreachable", "deny"), stdin: payload, direct: true, says: func(c net.Conn) { fmt.Fprint(c, "\x00\x00\x00\x02r\x7f") }},
	} {
		t.Run(name, func(t *testing.T) {
			var ends [2]ran
			var heard [2]told
			for i, early := range []bool{true, false} {
				dir := t.TempDir()
				said := play(t, filepath.Join(dir, "hookfabric", "agentshim.sock"), c.says)
				stdin := filepath.Join(dir, "stdin")
				if err := os.WriteFile(stdin, []byte(c.stdin), 0o600); err != nil {
					t.Fatal(err)
				}
				in, err := os.Open(stdin)
				if err != nil {
					t.Fatal(err)
				}
				env := append([]string{"XDG_RUNTIME_DIR=" + dir, "HOME=" + dir, "HOOKFABRIC_STATE=" + dir + "/state"}, c.env...)
				if c.direct {
					env = append(env, "HOOKFABRIC_NATS=nats://127.0.0.1:1")
				}
				ends[i] = runHook(t, early, env, in, c.args...)
				in.Close()
				heard[i] = <-said
				if id, err := uuid.Parse(heard[i].id); err != nil || id.Version() != 7 {
					t.Errorf("its event's id is %q", heard[i].id)
				}
				heard[i].id = ""
				// What the daemon says is said on; what is said of a daemon is not the same to the letter.
				if c.direct {
					ends[i].Stderr = ""
				}
			}
			if d := cmp.Diff(ends[1], ends[0]); d != "" {
				t.Errorf("early it ends otherwise (-late +early):\n%s", d)
			}
			if d := cmp.Diff(heard[1], heard[0], cmp.AllowUnexported(told{})); d != "" {
				t.Errorf("early it says something else (-late +early):\n%s", d)
			}
			if c.direct && !strings.Contains(ends[0].Stdout, `"deny"`) {
				t.Errorf("nobody judged, and it is not denied: %+v", ends[0])
			}
			if heard[0].written == c.direct {
				t.Errorf("that the answer was written is said: %t", heard[0].written)
			}
		})
	}
}

// A runtime that keeps stdin open gets its answer before it gives up, also early.
func TestEarlyDoesNotWaitForStdinForEver(t *testing.T) {
	dir := t.TempDir()
	play(t, filepath.Join(dir, "hookfabric", "agentshim.sock"), func(net.Conn) {})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	got := runHook(t, true, []string{"XDG_RUNTIME_DIR=" + dir, "HOME=" + dir, "HOOKFABRIC_NATS=nats://127.0.0.1:1"}, r,
		"--runtime", "claude", "--event", "PreToolUse", "--timeout", "1s", "--unreachable", "deny")
	if got.Exit != 2 || !strings.Contains(got.Stderr, "stdin was still open after half of the timeout") {
		t.Errorf("%+v", got)
	}
}

// What makes it early is that it is initialised before what takes long.
func TestEarlyIsInitialisedFirst(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	at := func(pkg string) int { return strings.Index(trace.String(), "init "+pkg+" ") }
	ours := at("github.com/hookfabric/hookfabric/cmd/agentshim/internal/early")
	if ours < 0 {
		t.Fatalf("it is not initialised at all:\n%s", &trace)
	}
	for _, slow := range []string{"github.com/nats-io/nats%2ego", "github.com/nats-io/nuid", "encoding/gob", "net/http", "syscall", "internal/godebug"} {
		if i := at(slow); i >= 0 && i < ours {
			t.Errorf("%s is initialised before it; what does early import by now?", slow)
		}
	}

	dir := t.TempDir()
	said := play(t, filepath.Join(dir, "hookfabric", "agentshim.sock"), answering(map[string]string{"exit": "0"}, "yes"))
	got := runHook(t, true, []string{"XDG_RUNTIME_DIR=" + dir, "GODEBUG=inittrace=1"}, nil, "--runtime", "claude")
	if <-said; got.Stdout != "yes" || strings.Contains(got.Stderr, "init github.com/nats-io/") {
		t.Errorf("the daemon answered, and the rest was initialised all the same: %+v", got)
	}
}

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

// request is one request of a hook to a daemon.
type request struct {
	words   map[string]string // without the event's id and the remaining time
	body    string
	id      string
	written bool // the hook confirmed that it wrote the answer
}

// startTestDaemon serves a socket, answers each request with respond, and returns the requests.
func startTestDaemon(t *testing.T, socket string, respond func(c net.Conn)) <-chan request {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	requests := make(chan request, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m, err := frame.Read(c, frame.MaxRequest)
			if err != nil {
				c.Close() // the hook sent no request
				continue
			}
			r := request{words: maps.Clone(m.Words), body: string(m.Body), id: m.Words["id"]}
			delete(r.words, "id")
			delete(r.words, "left")
			respond(c)
			last, err := frame.Read(c, frame.MaxRequest)
			r.written = err == nil && last.Kind == frame.Written
			c.Close()
			requests <- r
		}
	}()
	return requests
}

// answering returns a response of a heartbeat and an answer.
func answering(words map[string]string, body string) func(net.Conn) {
	return func(c net.Conn) {
		_ = frame.Write(c, &frame.Message{Kind: frame.Beat})
		_ = frame.Write(c, &frame.Message{Kind: frame.Answer, Words: words, Body: []byte(body)})
	}
}

// hookResult is what a hook wrote, and its exit code.
type hookResult struct {
	Stdout, Stderr string
	Exit           int
}

// runHook runs `agentshim hook` as a process with only the environment env.
func runHook(t *testing.T, env []string, stdin *os.File, args ...string) hookResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Args = append([]string{"agentshim", "hook"}, args...)
	c.Env = append([]string{programVar + "=1", "PATH=" + os.Getenv("PATH")}, env...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = stdin, &stdout, &stderr
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return hookResult{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

const (
	claudePayload = `{"session_id":"s","prompt_id":"p","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"u"}`
	denyAnswer    = `{"permissionDecision":"deny"}`
)

func TestTheDaemonAnswersAHook(t *testing.T) {
	deny := answering(map[string]string{"exit": "0"}, denyAnswer)
	for name, c := range map[string]struct {
		args, env []string
		stdin     string
		respond   func(net.Conn)
		words     map[string]string // beside those of every call
		want      hookResult
	}{
		"a deny is written":         {stdin: claudePayload, respond: deny, want: hookResult{Stdout: denyAnswer}},
		"no opinion writes nothing": {stdin: claudePayload, respond: answering(map[string]string{"exit": "0"}, "")},
		"messages and an exit code": {stdin: claudePayload,
			respond: answering(map[string]string{"exit": "2", "stderr": "no", "reason": "agentshim: careful\n"}, ""),
			want:    hookResult{Stderr: "agentshim: careful\nno\n", Exit: 2}},
		"an empty payload is sent": {respond: deny, want: hookResult{Stdout: denyAnswer}},
		"a large answer is complete": {stdin: claudePayload, respond: answering(map[string]string{"exit": "0"}, strings.Repeat("x", 3<<20)),
			want: hookResult{Stdout: strings.Repeat("x", 3<<20)}},
		"a large payload is complete": {stdin: claudePayload + strings.Repeat(" ", 3<<20), respond: deny, want: hookResult{Stdout: denyAnswer}},
		"flags are sent": {args: []string{"--timeout=30s", "--agent", "alice", "--start", "--workspaces", "/tmp", "--unreachable", "deny", "--state", "/tmp"},
			stdin: claudePayload, respond: deny, words: map[string]string{"agent": "alice", "workspaces": "/tmp", "unreachable": "deny"}, want: hookResult{Stdout: denyAnswer}},
		"variables of dialects are sent": {
			env:   []string{"HOOKFABRIC_AGENT=bob", "HOOKFABRIC_NATS=nats://127.0.0.1:1", "HOOKFABRIC_CREDS=/tmp/none", "CODEX_HOME=/c", "GEMINI_API_KEY=secret"},
			stdin: claudePayload, respond: deny, want: hookResult{Stdout: denyAnswer},
			words: map[string]string{"agent": "bob", "nats": "nats://127.0.0.1:1", "creds": "/tmp/none", "env:CODEX_HOME": "/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, sent := runWithDaemon(t, c.respond, c.stdin, c.env, c.args...)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("the result (-want +got):\n%s", d)
			}
			want := map[string]string{"runtime": "claude", "event": "PreToolUse", "unreachable": "allow"}
			maps.Copy(want, c.words)
			if d := cmp.Diff(want, sent.words); d != "" {
				t.Errorf("the request (-want +got):\n%s", d)
			}
			if sent.body != c.stdin || !sent.written {
				t.Errorf("the daemon got %d bytes, want %d; the answer is confirmed: %t", len(sent.body), len(c.stdin), sent.written)
			}
			if id, err := uuid.Parse(sent.id); err != nil || id.Version() != 7 {
				t.Errorf("the event's id is %q, want a UUID of version 7", sent.id)
			}
		})
	}
}

// Without an answer of the daemon the hook asks the fabric. No fabric answers here, so --unreachable decides.
func TestTheDaemonAnswersNoHook(t *testing.T) {
	for name, respond := range map[string]func(net.Conn){
		"it is for another fabric": func(c net.Conn) {
			_ = frame.Write(c, &frame.Message{Kind: frame.Elsewhere, Words: map[string]string{"reason": "it is for another fabric"}})
		},
		"it dies":                    func(c net.Conn) { c.Close() },
		"it hangs":                   func(net.Conn) {},
		"its answer is not readable": func(c net.Conn) { fmt.Fprint(c, "\x00\x00\x00\x02r\x7f") },
	} {
		t.Run(name, func(t *testing.T) {
			got, sent := runWithDaemon(t, respond, claudePayload, []string{"HOOKFABRIC_NATS=nats://127.0.0.1:1"}, "--unreachable", "deny", "--timeout", "1500ms")
			if !strings.Contains(got.Stdout, `"deny"`) || !strings.Contains(got.Stderr, "this hook asks the fabric itself") {
				t.Errorf("the call is not denied: %+v", got)
			}
			if sent.written {
				t.Error("the hook confirmed an answer that it did not get")
			}
		})
	}
}

// runWithDaemon runs a hook of Claude Code beside a test daemon, and returns the request that the daemon got.
func runWithDaemon(t *testing.T, respond func(net.Conn), stdin string, env []string, args ...string) (hookResult, request) {
	t.Helper()
	dir := t.TempDir()
	requests := startTestDaemon(t, filepath.Join(dir, "hookfabric", "agentshim.sock"), respond)
	file := filepath.Join(dir, "stdin")
	if err := os.WriteFile(file, []byte(stdin), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	env = append([]string{"XDG_RUNTIME_DIR=" + dir, "HOME=" + dir, "HOOKFABRIC_STATE=" + dir + "/state"}, env...)
	result := runHook(t, env, in, append([]string{"--runtime", "claude", "--event", "PreToolUse"}, args...)...)
	return result, <-requests
}

// A runtime that keeps stdin open gets its answer before its timeout.
func TestAHookWaitsForStdinForHalfOfItsTimeout(t *testing.T) {
	dir := t.TempDir()
	startTestDaemon(t, filepath.Join(dir, "hookfabric", "agentshim.sock"), func(net.Conn) {}) // it never answers
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	got := runHook(t, []string{"XDG_RUNTIME_DIR=" + dir, "HOME=" + dir, "HOOKFABRIC_NATS=nats://127.0.0.1:1"}, r,
		"--runtime", "claude", "--event", "PreToolUse", "--timeout", "1s", "--unreachable", "deny")
	if got.Exit != 2 || !strings.Contains(got.Stderr, "stdin was still open after half of the timeout") {
		t.Errorf("%+v", got)
	}
}

package builtin

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// auditing returns the hook "audit_log", which is closed when the test ends.
func auditing(t *testing.T, options map[string]any) workers.Handler {
	t.Helper()
	h, err := Catalog(nil)["audit_log"](schema.Hook{Name: "audit", Handler: "audit_log", Event: schema.PreToolUse, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func handle(t *testing.T, h workers.Handler, e *schema.Event) {
	t.Helper()
	res, err := h.Handle(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, schema.Result{}, res)
}

// lines returns the lines of a file, each of which must be JSON.
func lines(t *testing.T, path string) (out []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var m map[string]any
		if err := schema.Unmarshal(line, &m); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
			t.Fatalf("a line is %q: %v", line, err)
		}
		out = append(out, m)
	}
	return out
}

func TestAuditLinesHaveNoContentByDefault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	h := auditing(t, map[string]any{"file": path})
	start := time.Now()
	e := event(schema.PreToolUse)
	e.SessionID, e.Runtime, e.ToolUseID, e.Cwd, e.Native = "s1", "claude", "toolu_1", "/w", "secret"
	handle(t, h, e)
	handle(t, h, &schema.Event{HookType: schema.UserPromptSubmit, AgentID: "agent-2", Prompt: "a secret"})
	got := lines(t, path)
	for _, m := range got {
		at, err := time.Parse(time.RFC3339Nano, m["time"].(string))
		if err != nil || at.Before(start.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("the time is %v: %v", m["time"], err)
		}
		delete(m, "time")
	}
	want := []map[string]any{
		{"hook": "audit", "event": "PreToolUse", "event_id": "event-1", "agent": "agent-1", "session": "s1", "runtime": "claude",
			"tool": "Bash", "tool_use_id": "toolu_1", "cwd": "/w", "input_bytes": 24.0, "output_bytes": 8.0},
		{"hook": "audit", "event": "UserPromptSubmit", "agent": "agent-2", "prompt_bytes": 8.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is open to %v: %v", info.Mode(), err)
	}
}

func TestTheAuditLogRemovesSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	h := auditing(t, map[string]any{"file": path, "content": true})
	for name, c := range map[string]struct{ input, want string }{
		"nothing secret":     {`{"command":"ls -l","max_tokens":5}`, `{"command":"ls -l","max_tokens":5}`},
		"members":            {`{"a":{"api_key":"S","authToken":["S"],"Password":5},"x":1}`, `{"a":{"Password":"[removed]","api_key":"[removed]","authToken":"[removed]"},"x":1}`},
		"an access key":      {`{"command":"echo AKIAIOSFODNN7EXAMPLE"}`, `{"command":"echo [removed]"}`},
		"a private key":      {`{"content":"a\n-----BEGIN RSA PRIVATE KEY-----\nS\n-----END RSA PRIVATE KEY-----\nb"}`, `{"content":"a\n[removed]\nb"}`},
		"half a private key": {`{"content":"-----BEGIN PRIVATE KEY-----\nS"}`, `{"content":"[removed]"}`},
		"a header":           {`{"command":"curl -H 'Authorization: Bearer SSS' x"}`, `{"command":"curl -H 'Authorization: Bearer [removed]' x"}`},
		"a variable":         {`{"command":"DB_PASSWORD=SSS AWS_SECRET_ACCESS_KEY='S S' run"}`, `{"command":"DB_PASSWORD=[removed] AWS_SECRET_ACCESS_KEY=[removed] run"}`},
		"a flag":             {`{"command":"login --password SSS --token=SSS -u me:SSS x"}`, `{"command":"login --password [removed] --token=[removed] -u me:[removed] x"}`},
		"a URL":              {`{"url":"https://me:SSS@host/x"}`, `{"url":"https://me:[removed]@host/x"}`},
		"JSON in text":       {`{"body":"{\"secret\": \"S\", \"a\": 1}"}`, `{"body":"{\"secret\": [removed], \"a\": 1}"}`},
		"words of a command": {`{"argv":["login","--password","SSS","-u","me:SSS","--token","-x","Authorization:","SSS"]}`, `{"argv":["login","--password","[removed]","-u","[removed]","--token","[removed]","Authorization:","[removed]"]}`},
		"names and values":   {`{"env":[{"name":"API_TOKEN","value":"SSS"},{"key":"db-password","value":["SSS"]},{"name":"HOME","value":"/root"}]}`, `{"env":[{"name":"API_TOKEN","value":"[removed]"},{"key":"db-password","value":"[removed]"},{"name":"HOME","value":"/root"}]}`},
		"a web token":        {`{"x":["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"]}`, `{"x":["[removed]"]}`},
	} {
		e := event(schema.PreToolUse)
		e.ToolInput = jsontext.Value(c.input)
		handle(t, h, e)
		all := lines(t, path)
		got, err := schema.Marshal(all[len(all)-1]["tool_input"])
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	long := event(schema.PreToolUse)
	long.ToolInput = jsontext.Value(`{"content":"` + strings.Repeat("x", 3*16<<10) + `"}`)
	handle(t, h, long)
	long.ToolInput = jsontext.Value(`{"no":"JSON`)
	handle(t, h, long)
	all := lines(t, path)
	if text := all[len(all)-2]["tool_input"].(map[string]any)["content"].(string); len(text) > 16<<10+20 || !strings.HasSuffix(text, "… [cut]") {
		t.Errorf("%d bytes of a long text are written", len(text))
	}
	if in, ok := all[len(all)-1]["tool_input"]; ok {
		t.Errorf("input that is not JSON is written: %v", in)
	}
}

// No line is torn or lost when several hooks and processes write to one file, and the
// files stay below the limit.
func TestAuditFilesRotateUnderManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	options := map[string]any{"file": path, "max_bytes": minAuditBytes, "keep": 50}
	const writers, each = 4, 500
	var wg sync.WaitGroup
	for w := range writers {
		h := auditing(t, options)
		wg.Go(func() {
			for i := range each {
				e := event(schema.PreToolUse)
				e.EventID, e.Cwd = fmt.Sprintf("%d-%d", w, i), strings.Repeat("x", 200)
				if _, err := h.Handle(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 5 {
		t.Fatalf("the files are %v: %v", files, err)
	}
	seen := map[any]int{}
	for _, f := range files {
		for _, m := range lines(t, f) {
			seen[m["event_id"]]++
		}
		if info, err := os.Stat(f); err != nil || info.Size() > minAuditBytes || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes, mode %v: %v", f, info.Size(), info.Mode(), err)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%v is there %d times", id, n)
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d of %d lines are there", len(seen), writers*each)
	}
}

func TestTheAuditLogDeletesOldFiles(t *testing.T) {
	for _, keep := range []int{0, 2} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		h := auditing(t, map[string]any{"file": path, "max_bytes": minAuditBytes, "keep": keep})
		e := event(schema.PreToolUse)
		e.Cwd = strings.Repeat("x", minAuditBytes/2)
		for i := range 7 {
			e.EventID = fmt.Sprint(i)
			handle(t, h, e)
		}
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) != keep+1 {
			t.Fatalf("keeping %d: %v %v", keep, files, err)
		}
		slices.Sort(files) // the file itself, then .1, .2
		for i, f := range files {
			if got := lines(t, f); len(got) != 1 || got[0]["event_id"] != fmt.Sprint(6-i) {
				t.Errorf("%s has %v", f, got)
			}
		}
	}
}

func TestTheAuditLogRecreatesADeletedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	h := auditing(t, map[string]any{"file": path})
	handle(t, h, event(schema.PreToolUse))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	handle(t, h, event(schema.PreToolUse))
	if got := lines(t, path); len(got) != 1 {
		t.Errorf("%d lines", len(got))
	}
}

func TestAFileThatCannotBeWrittenIsAnError(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"no folder": filepath.Join(dir, "none", "a"), "a folder": dir, "a pipe": pipe, "a device": "/dev/full"} {
		h := auditing(t, map[string]any{"file": path})
		if _, err := h.Handle(t.Context(), event(schema.PreToolUse)); err == nil || !strings.Contains(err.Error(), "the audit log "+path) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// fullDisk is the variable with the file that a child process fills until a write fails.
const fullDisk = "HOOKFABRIC_TEST_FULL_DISK"

// A full disk is an error, and leaves no torn line in front of the next one.
func TestAFullDiskIsAnErrorWithoutATornLine(t *testing.T) {
	if path := os.Getenv(fullDisk); path != "" {
		fill(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), fullDisk+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := lines(t, path); len(got) < 10 {
		t.Errorf("%d lines were written", len(got))
	}
}

// fill writes lines until the limit on file size makes a write fail.
func fill(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	h := auditing(t, map[string]any{"file": path})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4000, Max: 4000}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := h.Handle(t.Context(), event(schema.PreToolUse)); err != nil {
			if !strings.Contains(err.Error(), "writing the audit log") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the disk was never full")
}

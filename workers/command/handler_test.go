package command

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func shellHook(script string) schema.Hook {
	h := hookOf(script)
	h.Shell = true
	return h
}

func TestAnswersOfPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		event  schema.EventType
		want   schema.Result
		err    string
	}{
		"nothing at exit 0 is no opinion":            {script: `:`},
		"blanks at exit 0 are no opinion":            {script: `echo; echo`},
		"an empty object is no opinion":              {script: `echo '{}'`},
		"JSON at exit 0 is the answer":               {script: `echo '{"decision":"ask","reason":"sure?"}'`, want: schema.Asked("sure?")},
		"MassGen's form is understood":               {script: `echo '{"allowed":false,"metadata":{"reason":"no"}}'`, want: schema.Denied("no")},
		"exit 2 blocks with the standard error":      {script: `echo ' no way ' >&2; exit 2`, want: schema.Denied("no way")},
		"exit 2 blocks with any output":              {script: `echo '{"decision":"allow"}'; echo no >&2; exit 2`, want: schema.Denied("no")},
		"exit 2 without a word names the hook":       {script: `exit 2`, want: schema.Denied(`blocked by the hook "test", which gave no reason`)},
		"exit 2 at the final response asks for more": {script: `echo 'run the tests' >&2; exit 2`, event: schema.BeforeFinalResponse, want: schema.Result{Decision: schema.Retry, Reason: "run the tests"}},
		"other exits are errors with the last output": {
			script: `echo '{"decision":"deny"}'; echo 'no such table' >&2; exit 3`, err: "exited with code 3: no such table"},
		"an exit without words is an error": {script: `exit 1`, err: "exited with code 1"},
		"a signal is an error that names it": {
			script: `echo ouch >&2; kill -TERM $$`, err: "ended by a signal (signal: terminated): ouch"},
		"text is an error":              {script: `echo fine`, err: "the answer is"},
		"a list is an error":            {script: `echo '[]'`, err: "the answer is a list"},
		"half an answer is an error":    {script: `printf '{"decision":'`, err: "not valid JSON"},
		"two answers are an error":      {script: `echo '{}{}'`, err: "not valid JSON"},
		"a missing program is an error": {script: `/no/such/program`, err: "exited with code 127"},
	} {
		t.Run(name, func(t *testing.T) {
			e := runnertest.Event("Bash")
			if c.event != "" {
				e.HookType = c.event
			}
			got, err := handleWith(t, shellHook(c.script), e)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want one with %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the answer differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgumentsReachTheProgramUnchanged(t *testing.T) {
	args := []string{"two words", `"quoted"`, "$HOME", "", "ä;b"}
	want := "two words|\"quoted\"|$HOME||ä;b|"
	for name, h := range map[string]schema.Hook{
		"a program": hookOf("args.sh", args...), "a line of shell": shellHook("./args.sh"),
	} {
		h.Args = args
		t.Run(name, func(t *testing.T) { expect(t, h, runnertest.Event("Bash"), schema.Denied(want)) })
	}
}

func TestAProgramNeedNotReadTheEvent(t *testing.T) {
	e := runnertest.Event("Bash")
	e.ToolInput = jsontext.Value(`{"command":"` + strings.Repeat("x", 4<<20) + `"}`)
	expect(t, shellHook(`exec <&-; echo '{"decision":"allow"}'`), e, schema.Allowed())
	expect(t, shellHook(`echo '{"decision":"allow"}'`), e, schema.Allowed())
	expect(t, shellHook(`n=$(wc -c); test $n -gt 4194304 && echo '{"decision":"deny","reason":"long"}'`), e, schema.Denied("long"))
}

func TestTheSizeOfAnswersIsLimited(t *testing.T) {
	fill := `head -c %d /dev/zero | tr '\0' ' '; echo '{"decision":"allow"}'`
	exact := strings.Replace(fill, "%d", "1048555", 1) // plus 21 bytes of the answer
	expect(t, shellHook(exact), runnertest.Event("Bash"), schema.Allowed())
	over := strings.Replace(fill, "%d", "1048556", 1)
	if _, err := handleWith(t, shellHook(over), runnertest.Event("Bash")); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestTheEndOfALongStandardErrorIsKept(t *testing.T) {
	_, err := handleWith(t, shellHook(`head -c 3000000 /dev/zero | tr '\0' 'x' >&2; echo >&2; echo 'the end' >&2; exit 1`), runnertest.Event("Bash"))
	if err == nil || !strings.HasSuffix(err.Error(), "… the end") {
		t.Errorf("error %v", err)
	}
	got, err := handleWith(t, shellHook(`head -c 3000000 /dev/zero | tr '\0' 'x' >&2; exit 2`), runnertest.Event("Bash"))
	if err != nil || len(got.Reason) != child.KeptTail {
		t.Errorf("a reason of %d bytes, error %v", len(got.Reason), err)
	}
}

func TestStandardErrorOfASuccessfulProgramIsLoggedAtDebugLevel(t *testing.T) {
	var log bytes.Buffer
	r := New(Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	defer r.Close()
	h, err := r.Load(shellHook(`echo 'took the slow road' >&2`), workers.Site{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "took the slow road") || !strings.Contains(log.String(), "level=DEBUG") {
		t.Errorf("the log is %q", log.String())
	}
}

func TestTheErrorOfAKilledProgramWrapsItsCause(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	h, err := r.Load(hookOf("hangs.sh", "/dev/null"), workers.Site{Dirs: testdata(t)})
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(why)
	if _, err = h.Handle(ctx, runnertest.Event("Bash")); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}

func TestCallsAfterCloseAreErrors(t *testing.T) {
	r := New(Options{})
	h, err := r.Load(shellHook(`:`), workers.Site{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); !errors.Is(err, errClosed) {
		t.Errorf("error %v", err)
	}
}

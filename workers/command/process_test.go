package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// handleHeld runs a line of shell that holds a lifeline with all its processes, and
// returns when all have ended.
func handleHeld(t *testing.T, grace time.Duration, script string) (schema.Result, error) {
	t.Helper()
	l := runnertest.NewLifeline(t)
	res, err := loadHeld(t, l, grace, `exec 3>"$LIFE"; echo >&3; `+script).Handle(t.Context(), runnertest.Event("Bash"))
	runnertest.Await(t, l.Gone(), "what the program has left running to be gone")
	return res, err
}

// loadHeld loads a line of shell that reads the lifeline's path in $LIFE.
func loadHeld(t *testing.T, l *runnertest.Lifeline, grace time.Duration, script string) workers.Handler {
	t.Helper()
	r := New(Options{Environ: []string{"PATH=/usr/bin:/bin", "LIFE=" + l.Path}})
	r.grace = grace
	t.Cleanup(func() { _ = r.Close() })
	h := shellHook(script)
	h.Env = []string{"LIFE"}
	handler, err := r.Load(h, workers.Site{})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestProcessesLeftBehindAreKilled(t *testing.T) {
	res, err := handleHeld(t, runnertest.Patience, `tail -f /dev/null >/dev/null 2>&1 & echo '{"decision":"allow"}'`)
	if err != nil || res.Decision != schema.Allow {
		t.Errorf("answer %+v, error %v", res, err)
	}
}

func TestAnAnswerCountsWhileAProcessKeepsTheOutputOpen(t *testing.T) {
	res, err := handleHeld(t, 200*time.Millisecond, `tail -f /dev/null & echo '{"decision":"allow"}'`)
	if err != nil || res.Decision != schema.Allow {
		t.Errorf("answer %+v, error %v", res, err)
	}
}

func TestNoOutputIsAnErrorWhileAProcessKeepsItOpen(t *testing.T) {
	if res, err := handleHeld(t, time.Millisecond, `tail -f /dev/null & :`); err == nil || !strings.Contains(err.Error(), "kept its standard output open") {
		t.Errorf("answer %+v, error %v", res, err)
	}
}

func TestTheAnswerMayComeThroughAProcessThatOutlivesTheProgram(t *testing.T) {
	res, err := handleHeld(t, runnertest.Patience, `( until case $(cat /proc/$$/stat) in *") Z "*) true;; *) false;; esac; do :; done; echo '{"decision":"deny"}' ) &
exit 0`)
	if err != nil || res.Decision != schema.Deny {
		t.Errorf("answer %+v, error %v", res, err)
	}
}

// A process in a session of its own is killed at the deadline, even without a parent, and
// does not delay the call.
func TestProcessesOutsideTheGroupAreKilledAtTheDeadline(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("KILLING OTHER SESSIONS IS NOT TESTED: only Linux tells whose processes they are")
	}
	for name, script := range map[string]string{
		"a child":                     `setsid sh -c 'exec 3>"$LIFE"; echo >&3; exec tail -f /dev/null' & wait`,
		"a child without its parent":  `( setsid sh -c 'exec 3>"$LIFE"; echo >&3; exec tail -f /dev/null' & ) ; exec tail -f /dev/null`,
		"a child without environment": `env -i LIFE="$LIFE" PATH="$PATH" setsid sh -c 'exec 3>"$LIFE"; echo >&3; exec tail -f /dev/null' & wait`,
		"a child's child":             `setsid sh -c 'setsid sh -c "exec 3>\"$LIFE\"; echo >&3; exec tail -f /dev/null" & wait' & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			l := runnertest.NewLifeline(t)
			handler := loadHeld(t, l, runnertest.Patience, script)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if res, err := handler.Handle(ctx, runnertest.Event("Bash")); err == nil {
					t.Errorf("it answered %+v", res)
				}
			}()
			runnertest.Await(t, l.Held(), "the program to start")
			cancel()
			runnertest.Await(t, done, "the call to return")
			runnertest.Await(t, l.Gone(), "what left the group to be killed")
		})
	}
}

// A process in a session of its own keeps running after an answered call, even when
// another call is killed.
func TestAProcessInASessionOutlivesAnAnsweredCall(t *testing.T) {
	l := runnertest.NewLifeline(t)
	end := l.Path + ".end"
	if err := syscall.Mkfifo(end, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := loadHeld(t, l, runnertest.Patience, `setsid sh -c 'exec 3>"$LIFE" >/dev/null 2>&1; echo >&3; exec cat "$LIFE.end"' >/dev/null 2>&1 & read x <"$LIFE.ready"; echo '{"decision":"allow"}'`).Handle(readied(t, l), runnertest.Event("Bash"))
	if err != nil || res.Decision != schema.Allow {
		t.Fatalf("%+v, %v", res, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := loadHeld(t, runnertest.NewLifeline(t), runnertest.Patience, `sleep 100`).Handle(ctx, runnertest.Event("Bash")); err == nil {
		t.Error("a call that is cancelled answered")
	}
	if err := os.WriteFile(end, []byte("over"), 0); err != nil { // waits for its reader
		t.Error(err)
	}
	runnertest.Await(t, l.Gone(), "what went on to end")
}

// readied lets the program answer after its child process holds the lifeline.
func readied(t *testing.T, l *runnertest.Lifeline) context.Context {
	t.Helper()
	ready := l.Path + ".ready"
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-l.Held()
		if err := os.WriteFile(ready, []byte("go\n"), 0); err != nil {
			t.Error(err)
		}
	}()
	return t.Context()
}

func TestAProgramThatIsBeingWrittenIsStartedLater(t *testing.T) {
	dir := runnertest.Tree(t, map[string]string{"policy*": "#!/bin/sh\necho '{\"decision\":\"allow\"}'\n"})
	r := New(Options{})
	defer r.Close()
	h, err := r.Load(hookOf("policy"), workers.Site{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(filepath.Join(dir, "policy"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); !errors.Is(err, syscall.ETXTBSY) {
		t.Errorf("while it is written: error %v", err)
	}
	closed := make(chan error)
	go func() { closed <- writer.Close() }()
	if res, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil || res.Decision != schema.Allow {
		t.Errorf("answer %+v, error %v", res, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestADeletedProgramIsAnError(t *testing.T) {
	dir := runnertest.Tree(t, map[string]string{"policy*": script})
	r := New(Options{})
	defer r.Close()
	h, err := r.Load(hookOf("policy"), workers.Site{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "policy")); err != nil {
		t.Fatal(err)
	}
	if res, err := h.Handle(t.Context(), runnertest.Event("Bash")); err == nil || !strings.Contains(err.Error(), "did not start") {
		t.Errorf("answer %+v, error %v", res, err)
	}
}

func BenchmarkStartToExit(b *testing.B) {
	for name, opt := range map[string]Options{"kernel only": {}, "watchdog": {Watchdog: child.SelfWatchdog()}} {
		b.Run(name, func(b *testing.B) {
			r := New(opt)
			defer r.Close()
			h, err := r.Load(hookOf("/bin/true"), workers.Site{})
			if err != nil {
				b.Fatal(err)
			}
			e := runnertest.Event("Bash")
			for b.Loop() {
				if _, err := h.Handle(b.Context(), e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

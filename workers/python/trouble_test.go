package python

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// lively returns a runner whose hooks hold l, and a hook that does what the tool's name
// says.
func lively(t *testing.T, l *runnertest.Lifeline, opt Options) (*Runner, schema.Hook) {
	t.Helper()
	opt.Environ = append(os.Environ(), "LIFE="+l.Path)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	hook := hookOf("trouble.told")
	hook.Env = []string{"LIFE"}
	return newRunner(t, opt), hook
}

// asCoroutine returns hook as a coroutine function whose calls share a host.
func asCoroutine(hook schema.Hook) schema.Hook {
	hook.Handler, hook.Idempotent = "trouble.told_later", true
	return hook
}

func oneHost() schema.PythonHosts { return schema.PythonHosts{Hosts: 1} }

// goes starts a call that must fail, and sends its error.
func goes(ctx context.Context, t *testing.T, h workers.Handler, tool string) <-chan error {
	failed := make(chan error, 1)
	go func() {
		res, err := h.Handle(ctx, runnertest.Event(tool))
		if err == nil {
			t.Errorf("%s answered %+v", tool, res)
		}
		failed <- err
	}()
	return failed
}

// fails waits for the error of a call.
func fails(t *testing.T, failed <-chan error) error {
	t.Helper()
	select {
	case err := <-failed:
		return err
	case <-time.After(runnertest.Patience):
		t.Fatalf("waited %v for the call to return", runnertest.Patience)
		return nil
	}
}

func says(t *testing.T, h workers.Handler, tool string) string {
	t.Helper()
	res, err := handle(t, h, runnertest.Event(tool))
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res.Reason
}

func TestAHangingCallDelaysNoOtherEvenWithOneHost(t *testing.T) {
	l := runnertest.NewLifeline(t)
	r, hook := lively(t, l, Options{})
	h := load(t, r, hook, oneHost())
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := goes(ctx, t, h, "hangs")
	runnertest.Await(t, l.Held(), "the call to hang")
	var side sync.WaitGroup
	for range 16 {
		side.Go(func() {
			if _, err := h.Handle(t.Context(), runnertest.Event("answers")); err != nil {
				t.Error(err)
			}
		})
	}
	side.Wait()
	why := errors.New("time is up")
	cancel(why)
	if err := fails(t, failed); !errors.Is(err, why) || !strings.Contains(err.Error(), "was killed with its host process") {
		t.Errorf("error %v", err)
	}
	runnertest.Await(t, l.Gone(), "the host to be gone")
}

func TestACoroutineIsCancelledAndItsHostLivesOn(t *testing.T) {
	l := runnertest.NewLifeline(t)
	r, hook := lively(t, l, Options{})
	r.wait.grace = runnertest.Patience // none is killed for being slow to end
	h := load(t, r, asCoroutine(hook), oneHost())
	before := says(t, h, "answers")
	ctx, cancel := context.WithCancel(t.Context())
	failed := goes(ctx, t, h, "sleeps")
	runnertest.Await(t, l.Held(), "the coroutine to wait")
	cancel()
	if err := fails(t, failed); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "was cancelled") {
		t.Errorf("error %v", err)
	}
	if after := says(t, h, "answers"); after != before {
		t.Errorf("host %s was replaced by %s", before, after)
	}
}

func TestACoroutineCancelledBeforeItsFirstStepIsAnswered(t *testing.T) {
	h := load(t, newRunner(t, Options{}), asCoroutine(hookOf("")), oneHost()).(*handler)
	says(t, h, "answers")
	at := h.pool.hosts[0]
	event, err := schema.Marshal(runnertest.Event("waits"))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan answer, 1)
	at.mu.Lock()
	at.waiting[100] = got
	at.mu.Unlock()
	// In one piece, so that the host has read both before its event loop turns.
	both := append(frame(100, calling(h.function, event, nil)...), frame(100, []byte(cancelling))...)
	if err := at.write(runnertest.Patience, both); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-got:
		if !strings.HasPrefix(a.Error, "CancelledError") {
			t.Errorf("answer %+v", a)
		}
	case <-time.After(runnertest.Patience):
		t.Error("there is no answer, for which its host would be killed")
	}
}

func TestAHostWithALeftoverThreadIsReplaced(t *testing.T) {
	l := runnertest.NewLifeline(t)
	r, hook := lively(t, l, Options{})
	r.wait.grace = runnertest.Patience
	h := load(t, r, asCoroutine(hook), oneHost())
	ctx, cancel := context.WithCancel(t.Context())
	failed := goes(ctx, t, h, "threads")
	runnertest.Await(t, l.Held(), "the thread to be started")
	cancel()
	if err := fails(t, failed); !strings.Contains(err.Error(), "was cancelled") {
		t.Errorf("error %v", err)
	}
	runnertest.Await(t, l.Gone(), "the thread to be gone")
	says(t, h, "answers")
}

func TestIgnoringCancellationKillsTheHostAndOthersRunAgain(t *testing.T) {
	l, gate := runnertest.NewLifeline(t), fifo(t)
	r, hook := lively(t, l, Options{Environ: nil})
	r.environ = append(r.environ, "GATE="+gate)
	hook.Env = append(hook.Env, "GATE")
	h := load(t, r, asCoroutine(hook), oneHost())
	before := says(t, h, "answers")
	ctx, cancel := context.WithCancel(t.Context())
	failed := goes(ctx, t, h, "stubborn")
	runnertest.Await(t, l.Held(), "the coroutine to wait")
	answered := make(chan string, 1)
	go func() { answered <- says(t, h, "waits") }()
	cancel()
	if err := fails(t, failed); !strings.Contains(err.Error(), "was killed with its host process") {
		t.Errorf("error %v", err)
	}
	runnertest.Await(t, l.Gone(), "the host to be gone")
	if err := os.WriteFile(gate, nil, 0); err != nil { // waits for a reader
		t.Fatal(err)
	}
	if after := <-answered; after == before {
		t.Error("the other call was answered by the host that was killed")
	}
}

func fifo(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/gate"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestACoroutineOverTheLimitGetsItsOwnHost(t *testing.T) {
	r := newRunner(t, Options{Logger: slog.New(slog.DiscardHandler)})
	h := load(t, r, asCoroutine(hookOf("")), oneHost())
	r.wait.slow, r.wait.stall = runnertest.Patience, 1 // no shared host takes an event in time
	says(t, h, "answers")
}

func TestABlockingCoroutineIsDetectedAndSharesNoHost(t *testing.T) {
	t.Parallel()
	l := runnertest.NewLifeline(t)
	log := new(logged)
	r, hook := lively(t, l, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	r.wait.stall = 50 * time.Millisecond
	blocking := load(t, r, asCoroutine(hook), oneHost())
	ctx, cancel := context.WithCancel(t.Context())
	failed := goes(ctx, t, blocking, "blocks")
	log.await(t, "blocks its event loop")
	cancel()
	if err := fails(t, failed); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	runnertest.Await(t, l.Gone(), "both its hosts to be gone")
	if f := blocking.(*handler).function; !f.blocks.Load() {
		t.Error("it may still share a host")
	}
	says(t, blocking, "answers")
}

func TestOutputIsLoggedAndTheStandardInputIsEmpty(t *testing.T) {
	log := new(logged)
	r := newRunner(t, Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	h := load(t, r, hookOf("trouble.told"), oneHost())
	if got := says(t, h, "prints"); got != "''" {
		t.Errorf("it read %s", got)
	}
	for _, want := range []string{"printed", "to one", "to two", "to stderr", "by a child", "level=DEBUG"} {
		log.await(t, want)
	}
}

func TestChangesOfStandardStreamsBreakNothing(t *testing.T) {
	h := load(t, newRunner(t, Options{}), hookOf("trouble.told"), oneHost())
	first := says(t, h, "answers")
	for _, tool := range []string{"floods", "closes", "answers"} {
		if got := says(t, h, tool); got != first {
			t.Errorf("%s was answered by %s, not by %s", tool, got, first)
		}
	}
}

func TestAHostWithInvalidOutputIsKilledAndReplaced(t *testing.T) {
	t.Parallel()
	h := load(t, newRunner(t, Options{}), hookOf("trouble.told"), oneHost())
	for _, tool := range []string{"junk", "junk_json", "unasked", "hangs_up"} {
		if err := fails(t, goes(t.Context(), t, h, tool)); !strings.Contains(err.Error(), "its host process was killed: it ") {
			t.Errorf("%s: %v", tool, err)
		}
		says(t, h, "answers")
	}
}

func TestAForkedChildDoesNotAnswerForItsHost(t *testing.T) {
	h := load(t, newRunner(t, Options{}), hookOf("trouble.told"), oneHost())
	host := says(t, h, "answers")
	for range 3 {
		if got := says(t, h, "forks"); got != host {
			t.Errorf("%s answered for %s", got, host)
		}
	}
}

func TestAChildOfAForkedChildKeepsTheFilesOfItsParent(t *testing.T) {
	h := load(t, newRunner(t, Options{}), hookOf("trouble.told"), oneHost())
	if got := says(t, h, "forks_twice"); got != "4" {
		t.Errorf("it has %q of the 4 files", got)
	}
}

func TestProcessesOfAHookEndWithThePool(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	for name, opt := range map[string]Options{"without a watchdog": {}, "with one": {Watchdog: child.SelfWatchdog()}} {
		t.Run(name, func(t *testing.T) {
			l := runnertest.NewLifeline(t)
			r, hook := lively(t, l, opt)
			h := load(t, r, hook, oneHost())
			says(t, h, "leaves")
			if err := h.(*handler).Close(); err != nil {
				t.Error(err)
			}
			runnertest.Await(t, l.Gone(), "all of it to be gone")
		})
	}
}

func TestAHostOutOfMemoryFailsItsCallAndIsReplaced(t *testing.T) {
	h := load(t, newRunner(t, Options{}), hookOf("trouble.told"), schema.PythonHosts{Hosts: 1, Memory: 256 << 20})
	before := says(t, h, "answers")
	if err := fails(t, goes(t.Context(), t, h, "hoards")); !strings.Contains(err.Error(), "raised MemoryError") {
		t.Errorf("error %v", err)
	}
	if after := says(t, h, "answers"); after == before {
		t.Error("the host was not replaced")
	}
}

func TestACoroutineWithoutMemoryRunsAgain(t *testing.T) {
	dir := runnertest.Tree(t, map[string]string{"policy.py": `
import os
async def check(event):
    if event.tool_name in os.listdir(os.path.dirname(__file__)):
        return {"reason": "again"}
    os.mkdir(os.path.join(os.path.dirname(__file__), event.tool_name))
    raise MemoryError
`})
	r := newRunner(t, Options{Logger: slog.New(slog.DiscardHandler)})
	for name, c := range map[string]struct {
		hook schema.Hook
		want string
	}{
		"one that may run again": {sharing("policy.check"), "again"},
		"one that may not":       {hookOf("policy.check"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := r.Load(c.hook, workers.Site{Dirs: []string{dir}, Python: oneHost()})
			if err != nil {
				t.Fatal(err)
			}
			got, err := handle(t, h, runnertest.Event(strconv.FormatBool(c.hook.Idempotent)))
			if got.Reason != c.want || (err == nil) != (c.want != "") {
				t.Errorf("answer %q, error %v", got.Reason, err)
			}
		})
	}
}

// logged is a log that a test can wait for.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.text.Write(b)
}

// await waits until want was logged.
func (l *logged) await(t *testing.T, want string) {
	t.Helper()
	for end := time.After(runnertest.Patience); ; {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), want)
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-end:
			t.Fatalf("waited %v for %q in the log", runnertest.Patience, want)
		}
	}
}

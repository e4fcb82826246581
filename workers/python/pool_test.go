package python

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// until waits until is returns true for the pool.
func until(t *testing.T, p *pool, what string, is func() bool) {
	t.Helper()
	bustest.Eventually(t, what, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return is()
	})
}

func TestHooksOfOneSiteShareTheirHostsUntilTheLastIsClosed(t *testing.T) {
	r := newRunner(t, Options{})
	first, second := load(t, r, hookOf("forms.pid"), oneHost()), load(t, r, hookOf("forms.later_pid"), oneHost())
	again, other := load(t, r, hookOf("forms.pid"), oneHost()), hookOf("forms.pid")
	other.Env = []string{"TERM"}
	host := reason(t, first)
	if got := reason(t, second); got != host {
		t.Errorf("another hook runs in %s, not in %s", got, host)
	}
	if reason(t, load(t, r, other, oneHost())) == host {
		t.Error("a hook that sees another environment shares the host")
	}
	for _, h := range []workers.Handler{first, first, second} {
		if err := h.(*handler).Close(); err != nil {
			t.Error(err)
		}
	}
	if got := reason(t, again); got != host {
		t.Errorf("the third hook runs in %s, not in %s", got, host)
	}
	if err := again.(*handler).Close(); err != nil {
		t.Error(err)
	}
	pid, err := strconv.Atoi(host)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("after the last hook was closed its host is still there: %v", err)
	}
	if _, err := handle(t, again, runnertest.Event("Bash")); !errors.Is(err, errClosed) {
		t.Errorf("error %v", err)
	}
	if len(r.pools) != 1 {
		t.Errorf("there are %d pools", len(r.pools))
	}
}

func TestHostsAreRecycledAndNoCallIsLost(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	for name, function := range map[string]string{"functions": "forms.pid", "coroutines": "forms.later_pid"} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, Options{})
			h := load(t, r, sharing(function), schema.PythonHosts{Hosts: 2, Recycle: 25})
			first := reason(t, h)
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for range 50 {
						if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
							t.Error(err)
						}
					}
				})
			}
			callers.Wait()
			p := h.(*handler).pool
			pid, err := strconv.Atoi(first)
			if err != nil {
				t.Fatal(err)
			}
			until(t, p, "the first host is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
			until(t, p, "those that have served enough are gone", func() bool { return p.able() >= 2 && p.able() == len(p.hosts) })
		})
	}
}

func TestHostsAreAddedWhileCallsHangAndLeaveAfterwards(t *testing.T) {
	t.Parallel()
	l := runnertest.NewLifeline(t)
	r, hook := lively(t, l, Options{})
	r.wait.slow = time.Millisecond
	h := load(t, r, hook, oneHost())
	p := h.(*handler).pool
	ctx, cancel := context.WithCancel(t.Context())
	var failed []<-chan error
	for n := range p.site.most() {
		failed = append(failed, goes(ctx, t, h, "hangs"))
		until(t, p, "one more host is held up", func() bool { return p.countSlow() == n+1 })
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err := h.Handle(short, runnertest.Event("answers"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "none of the 16 hosts became free in time") {
		t.Errorf("error %v", err)
	}
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		says(t, h, "answers")
	}()
	until(t, p, "a call waits", func() bool { return len(p.waiting) == 1 })
	cancel()
	for _, f := range failed {
		_ = fails(t, f)
	}
	runnertest.Await(t, waiting, "the call that waited to be answered")
	runnertest.Await(t, l.Gone(), "the hosts that hung to be gone")
	until(t, p, "there are as many hosts as there were", func() bool { return p.able() == 16 })
	p.sweep()
	until(t, p, "only one is left", func() bool { return len(p.hosts) == 1 })
	says(t, h, "answers")
}

func TestCoroutinesShareAHost(t *testing.T) {
	l := runnertest.NewLifeline(t)
	r, hook := lively(t, l, Options{})
	h := load(t, r, asCoroutine(hook), oneHost())
	says(t, h, "answers")
	var meeting sync.WaitGroup
	for range 16 {
		meeting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), runnertest.Patience)
			defer cancel()
			if _, err := h.Handle(ctx, runnertest.Event("meets")); err != nil {
				t.Error(err)
			}
		})
	}
	meeting.Wait()
}

func TestAHostThatDiedIdleIsReplaced(t *testing.T) {
	r := newRunner(t, Options{})
	h := load(t, r, hookOf("forms.pid"), oneHost())
	before := reason(t, h)
	p := h.(*handler).pool
	p.mu.Lock()
	host := p.hosts[0]
	p.mu.Unlock()
	pid, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	runnertest.Await(t, host.done, "the host to be gone")
	if after := reason(t, h); after == before {
		t.Error("the dead host answered")
	}
}

func TestAFunctionIsLoadedWhenItsHostHasEnded(t *testing.T) {
	r := newRunner(t, Options{Logger: slog.New(slog.DiscardHandler)})
	h := load(t, r, hookOf("forms.pid"), oneHost())
	p := h.(*handler).pool
	p.mu.Lock()
	dead := p.hosts[0]
	p.mu.Unlock()
	dead.stop(errors.New("a test has killed it"))
	runnertest.Await(t, dead.done, "the host to be gone")
	reason(t, h) // by the next one
	p.mu.Lock()
	p.hosts = append([]*host{dead}, p.hosts...) // as if its end were not detected yet
	p.mu.Unlock()
	load(t, r, hookOf("forms.canonical"), oneHost())
}

func TestAFunctionThatCannotBeImportedAgainIsALoadError(t *testing.T) {
	dir := runnertest.Tree(t, map[string]string{"policy.py": "import os\ndef check(event): os._exit(1)\n"})
	r := newRunner(t, Options{Environ: append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), Logger: slog.New(slog.DiscardHandler)})
	hook := hookOf("policy.check")
	hook.Env = []string{"PYTHONDONTWRITEBYTECODE"}
	h, err := r.Load(hook, workers.Site{Dirs: []string{dir}, Python: oneHost()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.py"), []byte("import gone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := handle(t, h, runnertest.Event("Bash")); err == nil || !strings.Contains(err.Error(), "exited with code 1") {
		t.Errorf("error %v", err)
	}
	_, err = handle(t, h, runnertest.Event("Bash"))
	if _, ok := errors.AsType[*workers.UnloadedError](err); !ok || !strings.Contains(err.Error(), "could not be imported again: ModuleNotFoundError") {
		t.Errorf("error %v", err)
	}
}

func TestAMissingInterpreterIsRetriedWithPauses(t *testing.T) {
	needPython(t)
	real, err := newSite(os.Environ(), schema.Hook{}, workers.Site{})
	if err != nil {
		t.Fatal(err)
	}
	dir := runnertest.Tree(t, map[string]string{
		"policy.py": "import os\ndef check(event): os._exit(1)\n",
		"python*":   "#!/bin/sh\nexec '" + real.interpreter + "' \"$@\"\n",
	})
	r := newRunner(t, Options{Logger: slog.New(slog.DiscardHandler)})
	h, err := r.Load(hookOf("policy.check"), workers.Site{Dirs: []string{dir}, Python: schema.PythonHosts{Interpreter: "./python", Hosts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "python")); err != nil {
		t.Fatal(err)
	}
	p := h.(*handler).pool
	_, first := handle(t, h, runnertest.Event("Bash"))
	until(t, p, "a start has failed", func() bool { return p.startBackoff.failures > 0 })
	_, second := handle(t, h, runnertest.Event("Bash"))
	if first == nil || second == nil || !strings.Contains(second.Error(), "python could not be started") {
		t.Errorf("errors %v; %v", first, second)
	}
	if n := p.startBackoff.failures; n > 5 {
		t.Errorf("it was tried %d times", n)
	}
}

func TestRunnersCanBeClosedAtAnyTime(t *testing.T) {
	needPython(t)
	for range 10 {
		r := New(Options{Logger: slog.New(slog.DiscardHandler)})
		var side sync.WaitGroup
		for i := range 6 {
			side.Go(func() {
				h, err := r.Load(hookOf([]string{"forms.pid", "forms.later", "forms.raises"}[i%3]), workers.Site{Dirs: testdata(t)})
				if err != nil {
					return
				}
				_, _ = h.Handle(t.Context(), runnertest.Event("Bash"))
				_ = h.(*handler).Close()
			})
			if i == 3 {
				side.Go(func() { _ = r.Close() })
			}
		}
		side.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.Load(hookOf("forms.pid"), workers.Site{Dirs: testdata(t)}); !errors.Is(err, errClosed) {
			t.Errorf("error %v", err)
		}
	}
}

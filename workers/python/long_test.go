package python

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// long skips a test that takes minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOOKFABRIC_LONG") == "" {
		t.Skip("SKIPPED: it takes minutes; set HOOKFABRIC_LONG=1 to run it")
	}
	needPython(t)
}

const (
	every  = 20 * time.Millisecond // between two calls
	hanged = time.Second           // the deadline of calls, which those that hang reach
	round  = 300                   // calls
)

func TestCallsThatHangDoNotSlowTheOthers(t *testing.T) {
	long(t)
	r := newRunner(t, Options{Logger: slog.New(slog.DiscardHandler)})
	h := load(t, r, hookOf("bench.sometimes_hangs"), schema.PythonHosts{Hosts: 4})
	took := map[string][]time.Duration{}
	for range 3 { // interleaved, as the machine has other work, too
		took["no call hangs"] = append(took["no call hangs"], arrive(t, h, 0)...)
		took["one in ten hangs"] = append(took["one in ten hangs"], arrive(t, h, 10)...)
	}
	for name, all := range took {
		slices.Sort(all)
		t.Logf("%s: %d calls that answer, p50 %v, p90 %v, p99 %v, the longest %v", name, len(all),
			all[len(all)/2], all[len(all)*9/10], all[len(all)*99/100], all[len(all)-1])
	}
	if all := took["one in ten hangs"]; all[len(all)*99/100] > hanged/2 {
		t.Error("calls waited behind those that hang")
	}
}

// arrive makes calls without waiting for earlier ones. Every nth call hangs. It returns how
// long the others took.
func arrive(t *testing.T, h workers.Handler, nth int) (took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var calls sync.WaitGroup
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := range round {
		<-ticker.C
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), hanged)
			defer cancel()
			if nth > 0 && i%nth == 0 {
				if _, err := h.Handle(ctx, runnertest.Event("hang")); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call that hangs: error %v", err)
				}
				return
			}
			begin := time.Now()
			if _, err := h.Handle(ctx, runnertest.Event("Bash")); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(begin))
		})
	}
	calls.Wait()
	return took
}

func TestManyCallsLeaveMemoryAsItWas(t *testing.T) {
	long(t)
	const calls, callers = 100_000, 16
	for name, hook := range map[string]schema.Hook{"functions": hookOf("bench.check"), "coroutines": sharing("bench.check_later")} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, Options{})
			h := load(t, r, hook, schema.PythonHosts{})
			resident := func(done int) (host, worker int) {
				p := h.(*handler).pool
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, o := range p.hosts {
					if o.ready {
						host = max(host, rss(t, strconv.Itoa(o.process.Pid())))
					}
				}
				worker = rss(t, "self")
				t.Logf("after %d %% of %d calls: the largest of %d hosts has %d KiB, the worker %d KiB", done*100/calls, calls, len(p.hosts), host, worker)
				return host, worker
			}
			burst(t, h, callers, calls/10)
			host, worker := resident(calls / 10)
			burst(t, h, callers, calls/10*4)
			resident(calls / 2)
			burst(t, h, callers, calls/2)
			hostAfter, workerAfter := resident(calls)
			if hostAfter > host*12/10 || workerAfter > worker*15/10 {
				t.Error("memory grew with the calls")
			}
		})
	}
}

// burst makes calls from some callers at once.
func burst(t *testing.T, h workers.Handler, callers, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls / callers {
				if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// rss returns the resident memory of a process in KiB, from /proc.
func rss(t *testing.T, pid string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the memory of hosts is not measured, because only Linux has /proc")
	}
	b, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0 // it has just ended
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		return 0 // it is just ending
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

const (
	oneHook  = "presets: []\nhooks:\n  PreToolUse:\n    - {name: one, type: builtin, handler: deny}\n"
	twoHooks = oneHook + "    - {name: two, type: builtin, handler: deny}\n"
	faulty   = "hooks:\n  PreToolUse:\n    - {type: builtin, handler: deny, tiemout: 5}\n  BeforeLunch: []\n"
)

// A reloadTest is a reloader with its log, its metrics and the files that it applied.
type reloadTest struct {
	*reloader
	dir     string
	reg     *prometheus.Registry
	log     bytes.Buffer
	hup     chan os.Signal
	applied chan *control.File
	// answer is the fabric's next answer.
	answer schema.ConfigAnswer
	err    error
}

func newReloadTest(t *testing.T) *reloadTest {
	t.Helper()
	g := &reloadTest{dir: t.TempDir(), reg: prometheus.NewRegistry(), hup: make(chan os.Signal), applied: make(chan *control.File, 10)}
	put(t, g.dir, "hooks.yaml", oneHook)
	g.reloader = newReloader(reloadOptions{
		Path: filepath.Join(g.dir, "hooks.yaml"), Hangup: g.hup, Registerer: g.reg,
		Logger: slog.New(slog.NewTextHandler(&g.log, nil)),
		Apply: func(_ context.Context, file *control.File) (*schema.ConfigAnswer, error) {
			g.applied <- file
			return &g.answer, g.err
		},
	})
	return g
}

// value returns a metric's value, of the counter with this result.
func (g *reloadTest) value(t *testing.T, name, result string) float64 {
	t.Helper()
	families, err := g.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (result == "" || m.GetLabel()[0].GetValue() == result) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %s", name, result)
	return 0
}

func TestReloads(t *testing.T) {
	for _, c := range []struct {
		name, text string
		answer     schema.ConfigAnswer
		err        error
		result     string
		good       float64
		logged     []string
	}{
		{"a good file is applied", twoHooks, schema.ConfigAnswer{Version: 8, Changed: true}, nil,
			"ok", 1, []string{"level=INFO", "configuration file applied", "version=8"}},
		{"a file with the active content changes nothing", twoHooks, schema.ConfigAnswer{Version: 7}, nil,
			"unchanged", 1, []string{"level=INFO", "has the content of the active version", "version=7"}},
		{"all faults of a faulty file are logged", faulty, schema.ConfigAnswer{}, nil,
			"bad_file", 0, []string{"level=ERROR", "the active version stays", "hooks.yaml:3:", "tiemout", " | ", "hooks.yaml:4:", "BeforeLunch"}},
		{"an empty file is faulty", "", schema.ConfigAnswer{}, nil,
			"bad_file", 0, []string{"level=ERROR", "the file is empty"}},
		{"a file that is too large is faulty", strings.Repeat("#", hooksyaml.MaxFile+1), schema.ConfigAnswer{}, nil,
			"bad_file", 0, []string{"level=ERROR", "the limit is 8388608"}},
		{"all problems of a refused file are logged", twoHooks,
			schema.ConfigAnswer{Version: 7, Refused: true, Problems: []schema.Problem{{Node: "w1", Hook: "two", Error: "no such program"}, {Node: "w2", Error: "it is deaf"}}}, nil,
			"refused", 0, []string{"level=ERROR", "was rejected", "version=7", "node w1 cannot load hook two: no such program | node w2: it is deaf"}},
		{"an error bad_request is a refusal", twoHooks, schema.ConfigAnswer{}, &schema.ControlError{Code: schema.CodeBadRequest, Message: "two is registered already"},
			"refused", 0, []string{"level=ERROR", "was rejected", "two is registered already"}},
		{"a conflict with another change is tried again", twoHooks, schema.ConfigAnswer{}, &schema.ControlError{Code: schema.CodeConflict, Message: "version 9 is being applied"},
			"failed", 0, []string{"level=ERROR", "tries again", "version 9 is being applied"}},
		{"a failure of the fabric is tried again", twoHooks, schema.ConfigAnswer{}, errors.New("JetStream is gone"),
			"failed", 0, []string{"level=ERROR", "tries again", "JetStream is gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newReloadTest(t)
			g.answer, g.err = c.answer, c.err
			put(t, g.dir, "hooks.yaml", c.text)
			g.check(t.Context())
			if got := g.value(t, "hookfabric_config_reloads_total", c.result); got != 1 {
				t.Errorf("%v reloads with the result %s", got, c.result)
			}
			if got := g.value(t, "hookfabric_config_reload_successful", ""); got != c.good {
				t.Errorf("hookfabric_config_reload_successful is %v", got)
			}
			if n := strings.Count(g.log.String(), "\n"); n != 1 {
				t.Errorf("%d log lines:\n%s", n, &g.log)
			}
			for _, part := range c.logged {
				if !strings.Contains(g.log.String(), part) {
					t.Errorf("the log has no %q:\n%s", part, &g.log)
				}
			}
		})
	}
}

func TestAReloadAppliesTheFileWithANote(t *testing.T) {
	g := newReloadTest(t)
	put(t, g.dir, "hooks.yaml", twoHooks)
	g.check(t.Context())
	want := &control.File{Name: g.opt.Path, Dir: g.dir, Text: twoHooks, Note: "reloaded hooks.yaml"}
	if diff := cmp.Diff(want, <-g.applied); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyNewContentIsApplied(t *testing.T) {
	g := newReloadTest(t)
	put(t, g.dir, "hooks.yaml", oneHook)
	g.check(t.Context())
	if len(g.applied) != 0 {
		t.Error("the content of the start was applied again")
	}
	put(t, g.dir, "hooks.yaml", faulty)
	for range 3 {
		g.check(t.Context())
	}
	remove(t, g.dir, "hooks.yaml")
	for range 3 {
		g.check(t.Context())
	}
	if got := g.value(t, "hookfabric_config_reloads_total", "bad_file"); got != 2 {
		t.Errorf("a faulty and a missing file were counted %v times", got)
	}
	put(t, g.dir, "hooks.yaml", oneHook)
	g.check(t.Context())
	if len(g.applied) != 1 {
		t.Errorf("a corrected file was applied %d times", len(g.applied))
	}
}

func TestTheMetricHasTheTimeOfTheLastSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newReloadTest(t)
		const name = "hookfabric_config_reload_timestamp_seconds"
		start := g.value(t, name, "")
		<-time.After(time.Minute)
		put(t, g.dir, "hooks.yaml", faulty)
		g.reload(t.Context())
		if got := g.value(t, name, ""); got != start {
			t.Errorf("a faulty file changed it by %v s", got-start)
		}
		put(t, g.dir, "hooks.yaml", oneHook)
		g.reload(t.Context())
		if got := g.value(t, name, ""); got != start+60 {
			t.Errorf("after a minute it changed by %v s", got-start)
		}
	})
}

func TestAFailedReloadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newReloadTest(t)
		g.err = errors.New("JetStream is gone")
		put(t, g.dir, "hooks.yaml", twoHooks)
		start := time.Now()
		g.check(t.Context())
		<-g.retry.C
		if got := time.Since(start); got != retryAfter {
			t.Errorf("again after %v", got)
		}
		g.err = nil
		g.reload(t.Context())
		select {
		case <-g.retry.C:
			t.Error("it was applied again after a success")
		case <-time.After(time.Hour):
		}
	})
}

func TestAReloadDuringTheStopIsNoFailure(t *testing.T) {
	g := newReloadTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	g.err = context.Canceled
	cancel()
	g.reload(ctx)
	if g.log.Len() > 0 || g.value(t, "hookfabric_config_reloads_total", "failed") != 0 {
		t.Errorf("the log has:\n%s", &g.log)
	}
}

// The test uses a real file system, and a signal.
func TestAReloaderAppliesChangesAndSignals(t *testing.T) {
	g := newReloadTest(t)
	put(t, g.dir, "hooks.yaml", twoHooks) // after newReloader, and before run
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.run(ctx) })
	expect := func(text string) {
		t.Helper()
		if file := <-g.applied; file.Text != text {
			t.Errorf("it applied\n%s", file.Text)
		}
	}
	expect(twoHooks)
	put(t, g.dir, "next", oneHook)
	rename(t, g.dir, "next", "hooks.yaml")
	expect(oneHook)
	g.hup <- syscall.SIGHUP
	expect(oneHook)
	cancel()
	running.Wait()
	if len(g.applied) != 0 {
		t.Errorf("it applied %d more", len(g.applied))
	}
}

func TestAHangupWithoutAFileIsIgnored(t *testing.T) {
	var log bytes.Buffer
	hup := make(chan os.Signal)
	r := newReloader(reloadOptions{Hangup: hup, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx) })
	hup <- syscall.SIGHUP
	hup <- syscall.SIGHUP // received after the first was handled
	cancel()
	running.Wait()
	if !strings.Contains(log.String(), "level=INFO") || !strings.Contains(log.String(), "without --config") {
		t.Errorf("the log is\n%s", &log)
	}
}

func TestAHangupDoesNotEndTheProcess(t *testing.T) {
	signals, stop := hangups()
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	must(t, err)
	must(t, self.Signal(syscall.SIGHUP))
	if got := <-signals; got != syscall.SIGHUP {
		t.Errorf("got %v", got)
	}
}

func TestALogLineHasABoundedNumberOfFaults(t *testing.T) {
	many := make([]string, maxLoggedFaults+3)
	got := joined(many)
	if n := strings.Count(got, " | "); n != maxLoggedFaults || !strings.HasSuffix(got, "and 3 more") {
		t.Errorf("%d sentences: %s", n+1, got)
	}
}

package python

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/command"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// BenchmarkCalls compares the cost of a call with that of a process per call. Only the
// ratios matter.
func BenchmarkCalls(b *testing.B) {
	needPython(b)
	for _, c := range []struct {
		name   string
		runner workers.Runner
		hook   schema.Hook
	}{
		{"function", New(Options{}), hookOf("bench.check")},
		{"coroutine that shares its host", New(Options{}), sharing("bench.check_later")},
		{"coroutine alone in its host", New(Options{}), hookOf("bench.check_later")},
		{"process per call", command.New(command.Options{}), schema.Hook{Type: schema.Command, Handler: defaultInterpreter, Args: []string{testdata(b)[0] + "/process.py"}}},
	} {
		b.Cleanup(func() { _ = c.runner.Close() })
		h, err := c.runner.Load(c.hook, workers.Site{Dirs: testdata(b)})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/1 caller", func(b *testing.B) {
			for b.Loop() {
				benchCall(b, h)
			}
		})
		b.Run(c.name+"/16 callers", func(b *testing.B) {
			work := make(chan struct{}, 16)
			done := make(chan struct{})
			for range 16 {
				go func() {
					for range work {
						benchCall(b, h)
					}
					done <- struct{}{}
				}()
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			for range 16 {
				<-done
			}
		})
	}
}

func benchCall(b *testing.B, h workers.Handler) {
	if res, err := h.Handle(b.Context(), runnertest.Event("Bash")); err != nil || res.Decision != schema.Deny {
		b.Errorf("answer %+v, error %v", res, err)
	}
}

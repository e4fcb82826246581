package aggregator

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// written is a log that may be written while it is read.
type written struct {
	mu sync.Mutex // guards what follows
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// take is what was written since it was last taken.
func (w *written) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.b.Reset()
	return w.b.String()
}

func TestOfManyFailuresAFewAreLoggedAndTheRestIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log written
		f := failures{log: slog.New(slog.NewTextHandler(&log, nil))}
		note := func(hook string, times int) {
			for range times {
				f.note(&schema.Routing{}, &schema.ExecutedHook{Hook: hook, Outcome: schema.Busy, Error: "the queue is full"})
			}
		}
		note("often", 1000)
		note("seldom", 2)
		said := log.take()
		if n := strings.Count(said, "hook=often"); n != eachOf {
			t.Errorf("%d lines of 1000 failures", n)
		}
		if n := strings.Count(said, "hook=seldom"); n != 2 {
			t.Errorf("%d lines of 2 failures", n)
		}
		<-time.After(logEvery + 1)
		synctest.Wait()
		if said = log.take(); strings.Count(said, "more=990") != 1 || strings.Count(said, "many times") != 1 {
			t.Errorf("the rest is not summed up: %s", said)
		}
		note("often", eachOf+3)
		f.end()
		note("often", 1)
		if said = log.take(); strings.Count(said, "hook=often") != eachOf+2 || strings.Count(said, "more=3") != 1 {
			t.Errorf("at the end: %s", said)
		}
	})
}

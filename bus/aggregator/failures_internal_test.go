package aggregator

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func TestOfManyFailuresAFewAreLoggedAndTheRestIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := failures{log: slog.New(slog.NewTextHandler(&log, nil))}
		lines := func(containing string) int { return strings.Count(log.String(), containing) }
		note := func(hook string, times int) {
			for range times {
				f.note(&schema.Routing{}, &schema.ExecutedHook{Hook: hook, Outcome: schema.Busy, Error: "the queue is full"})
			}
		}
		note("often", 1000)
		note("seldom", 2)
		if n := lines("hook=often"); n != eachOf {
			t.Errorf("%d lines of 1000 failures", n)
		}
		if n := lines("hook=seldom"); n != 2 {
			t.Errorf("%d lines of 2 failures", n)
		}
		<-time.After(logEvery + 1)
		synctest.Wait()
		if lines("more=990") != 1 || lines("many times") != 1 {
			t.Errorf("the rest is not summed up: %s", log.String())
		}
		log.Reset()
		note("often", eachOf+3)
		f.end()
		note("often", 1)
		if lines("hook=often") != eachOf+2 || lines("more=3") != 1 {
			t.Errorf("at the end: %s", log.String())
		}
	})
}

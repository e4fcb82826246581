package aggregator_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

func TestTheLogHasAFewLinesOfEachKindOfFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		fails := func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{}, errors.New("broken")
		}
		f := startWith(t, aggregator.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, library{"often": fails, "seldom": fails},
			hook("often"), hook("seldom", at(schema.PostToolUse)))
		for range 25 {
			f.ask(event(schema.PreToolUse))
		}
		for range 2 {
			f.ask(event(schema.PostToolUse))
		}
		synctest.Wait()
		for name, want := range map[string]int{"often": 10, "seldom": 2} {
			if n := strings.Count(log.String(), `msg="hook failed" hook=`+name); n != want {
				t.Errorf("%d lines about the hook %q, want %d:\n%s", n, name, want, &log)
			}
		}
		<-time.After(10 * time.Second)
		f.ask(event(schema.PreToolUse))
		synctest.Wait()
		if !strings.Contains(log.String(), "more_before=15") {
			t.Errorf("the next line does not say how many were left out:\n%s", &log)
		}
	})
}

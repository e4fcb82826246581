package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// delaying returns the hook "debug_delay" at an event.
func delaying(t *testing.T, at schema.EventType, options map[string]any) workers.Handler {
	t.Helper()
	h, err := Catalog(nil)["debug_delay"](schema.Hook{Name: "test", Handler: "debug_delay", Event: at, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// took returns how long a call is delayed.
func took(t *testing.T, h workers.Handler, at schema.EventType, agent, id string) time.Duration {
	t.Helper()
	start := time.Now()
	res, err := h.Handle(t.Context(), &schema.Event{HookType: at, AgentID: agent, EventID: id, ToolName: "Bash"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, schema.Result{}, res)
	return time.Since(start)
}

func TestEachAgentIsDelayedOnceAfterItsCalls(t *testing.T) {
	for name, c := range map[string]struct {
		at      schema.EventType
		options map[string]any
		want    []int // seconds, call by call
	}{
		"after three by default": {schema.PostToolUse, map[string]any{"debug_delay_seconds": 2}, []int{0, 0, 2, 0, 0, 0, 0}},
		"after two":              {schema.PostToolUse, map[string]any{"debug_delay_seconds": 2, "debug_delay_after_n_tools": 2}, []int{0, 2, 0, 0}},
		"at once":                {schema.PostToolUse, map[string]any{"debug_delay_seconds": 2, "debug_delay_after_n_tools": 0}, []int{2, 0}},
		"before the next tool":   {schema.PreToolUse, map[string]any{"debug_delay_seconds": 2, "debug_delay_after_n_tools": 2}, []int{0, 0, 2, 0}},
		"no delay by default":    {schema.PostToolUse, nil, []int{0, 0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := delaying(t, c.at, c.options)
				for _, agent := range []string{"a", "b"} {
					var got []int
					for i := range c.want {
						got = append(got, int(took(t, h, c.at, agent, fmt.Sprint(agent, i)).Seconds()))
					}
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("agent %s (-want +got):\n%s", agent, diff)
					}
				}
			})
		})
	}
}

func TestARepeatedCallCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := delaying(t, schema.PostToolUse, map[string]any{"debug_delay_seconds": 1, "debug_delay_after_n_tools": 2})
		for _, id := range []string{"1", "1", "1"} {
			if d := took(t, h, schema.PostToolUse, "a", id); d != 0 {
				t.Errorf("delayed for %v", d)
			}
		}
		if d := took(t, h, schema.PostToolUse, "a", "2"); d != time.Second {
			t.Errorf("the second call was delayed for %v", d)
		}
	})
}

func TestTheDelayEndsWhenItsCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := delaying(t, schema.PostToolUse, map[string]any{"debug_delay_seconds": 20, "debug_delay_after_n_tools": 0})
		why := errors.New("the hook's deadline")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		start := time.Now()
		if _, err := h.Handle(ctx, event(schema.PostToolUse)); !errors.Is(err, why) {
			t.Errorf("error %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("it ended after %v", d)
		}
	})
}

func TestAgentsOverTheLimitAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := delaying(t, schema.PostToolUse, map[string]any{"debug_delay_seconds": 1, "debug_delay_after_n_tools": 1})
		held := 0
		for i := range maxDelayed + 10 {
			if took(t, h, schema.PostToolUse, fmt.Sprint(i), "") > 0 {
				held++
			}
		}
		if held != maxDelayed {
			t.Errorf("%d agents were delayed", held)
		}
	})
}

func TestImpossibleDelaysAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		at      schema.EventType
		timeout time.Duration
		options map[string]any
		want    string
	}{
		"as long as the timeout":         {schema.PostToolUse, 5 * time.Second, map[string]any{"debug_delay_seconds": 5}, "set a longer timeout"},
		"longer than the default one":    {schema.PostToolUse, 0, map[string]any{"debug_delay_seconds": 30}, "ends it after 30s"},
		"longer than any duration":       {schema.PostToolUse, time.Second, map[string]any{"debug_delay_seconds": 1e300}, "set a longer timeout"},
		"negative":                       {schema.PostToolUse, 0, map[string]any{"debug_delay_seconds": -1}, "write 0 for no delay"},
		"after a negative number":        {schema.PostToolUse, 0, map[string]any{"debug_delay_after_n_tools": -1}, "how many tool calls"},
		"where no tool is called":        {schema.SessionStart, 0, nil, "put it under PostToolUse"},
		"a text for a number of seconds": {schema.PostToolUse, 0, map[string]any{"debug_delay_seconds": "30s"}, "must be a number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Catalog(nil)["debug_delay"](schema.Hook{Name: "test", Handler: "debug_delay", Event: c.at, Timeout: schema.Duration(c.timeout), Options: c.options})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

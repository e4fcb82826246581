package dispatch_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func given(c string) func(*schema.Hook) { return func(h *schema.Hook) { h.When = c } }

// An event is decoded on first use, and only once: rewrites are applied to the decoded
// event.
func TestAnEventIsDecodedAtMostOnce(t *testing.T) {
	rewrites := act{says: schema.Rewritten(jsontext.Value(`{"n":1}`))}
	for _, c := range []struct {
		is      string
		hooks   []schema.Hook
		decodes int32
	}{
		{"no condition reads the body", []schema.Hook{hook("x"), hook("y", pool("other"))}, 0},
		{"a condition only asks who calls what", []schema.Hook{hook("x", given("routing")), hook("y", given("routing"))}, 0},
		{"conditions of one batch", []schema.Hook{hook("x", given("true"), readonly), hook("y", given("odd"), readonly)}, 1},
		{"conditions of several batches", []schema.Hook{hook("x", given("true")), hook("y", given("odd"), pool("other")), hook("z", given("true"))}, 1},
		{"a rewrite is handed on", []schema.Hook{hook("rewrites"), hook("y", pool("other"))}, 1},
		{"a rewrite without a later hook", []schema.Hook{hook("y", pool("other")), hook("rewrites")}, 0},
		{"conditions before and behind a rewrite", []schema.Hook{hook("x", given("true")), hook("rewrites"), hook("y", given("true"), pool("other"))}, 1},
		{"conditions of shadow hooks", []schema.Hook{hook("x", given("true")), hook("s", shadow, given("true")), hook("t", shadow, given("odd"))}, 1},
		{"shadow hooks before and behind a rewrite", []schema.Hook{hook("s", shadow, given("true")), hook("rewrites"), hook("t", shadow, given("true"))}, 1},
	} {
		t.Run(c.is, func(t *testing.T) {
			inWorld(t, c.hooks, func(w *world) {
				var decodes atomic.Int32
				w.opt.Decode = func(body []byte, r schema.Routing) (*schema.Event, error) {
					decodes.Add(1)
					return schema.DecodeEvent(body, r)
				}
				w.build()
				for _, p := range w.pools("remote", "other") {
					p.act("rewrites", rewrites)
				}
				w.ask(time.Minute)
				synctest.Wait()
				if n := decodes.Load(); n != c.decodes {
					t.Errorf("decoded %d times; want %d", n, c.decodes)
				}
			})
		})
	}
}

// A condition sees the rewrites of earlier hooks, and no values cached for another event.
func TestAConditionSeesTheRewrittenEvent(t *testing.T) {
	var seen []string
	see := func(string) (dispatch.Condition, error) {
		return seeing(func(v *dispatch.View) {
			e, err := v.Event()
			if err != nil {
				t.Error(err)
				return
			}
			made, _ := v.Made.(string)
			seen = append(seen, string(e.ToolInput)+made)
			v.Made = " again"
		}), nil
	}
	hooks := []schema.Hook{hook("x", given("x")), hook("y", given("y")), hook("rewrites", pool("other")), hook("z", given("z"))}
	inWorld(t, hooks, func(w *world) {
		p := w.pools("remote", "other")
		p["other"].act("rewrites", act{says: schema.Rewritten(jsontext.Value(`{"n":1}`))})
		snap, err := dispatch.Compile(schema.Config{Version: 1, Hooks: hooks}, see)
		if err != nil {
			t.Fatal(err)
		}
		w.snap = snap
		w.ask(time.Minute)
		want := []string{`{"n":0}`, `{"n":0} again`, `{"n":1}`}
		if len(seen) != 3 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
			t.Errorf("saw %q, want %q", seen, want)
		}
	})
}

// seeing is a condition that holds and reports its views.
type seeing func(v *dispatch.View)

func (s seeing) Holds(v *dispatch.View) (bool, error) {
	s(v)
	return true, nil
}

// With any number of conditions, the verdict is in time.
func TestConditionsAreNotEvaluatedAfterTheDeadline(t *testing.T) {
	var evaluated atomic.Int32
	slow := func(string) (dispatch.Condition, error) {
		return seeing(func(*dispatch.View) { evaluated.Add(1); pass(time.Minute) }), nil
	}
	hooks := []schema.Hook{hook("x", given("x")), hook("y", given("y")), hook("z", given("z")), hook("s", shadow, given("s"))}
	inWorld(t, hooks, func(w *world) {
		w.pools("remote")
		snap, err := dispatch.Compile(schema.Config{Version: 1, Hooks: hooks}, slow)
		if err != nil {
			t.Fatal(err)
		}
		w.snap = snap
		v, took := w.ask(90 * time.Second)
		w.wants(v, schema.None, "x=ok@remote y=deadline z=deadline")
		w.took(took, 2*time.Minute, 2*time.Minute)
		pass(5 * time.Minute)
		if n := evaluated.Load(); n != 3 {
			t.Errorf("%d conditions were evaluated; want those of x, y and s", n)
		}
	})
}

func TestEqualConditionsAreCompiledOnce(t *testing.T) {
	compiled := map[string]int{}
	count := func(expr string) (dispatch.Condition, error) {
		compiled[expr]++
		return condition(expr), nil
	}
	var hooks []schema.Hook
	for _, name := range []string{"a", "b", "c", "d"} {
		hooks = append(hooks, hook(name, given("true")), hook(name+"2", given("odd")), hook(name+"3"))
	}
	if _, err := dispatch.Compile(schema.Config{Version: 1, Hooks: hooks}, count); err != nil {
		t.Fatal(err)
	}
	if compiled["true"] != 1 || compiled["odd"] != 1 || len(compiled) != 2 {
		t.Errorf("%v", compiled)
	}
}

// Conditions on routing do not read the body. If the call is guarded, the body must still
// be an event.
func TestAGuardedCallWithAnUnreadInvalidBodyIsRefused(t *testing.T) {
	elsewhere := given("other agent")
	for _, c := range []struct {
		is    string
		hooks []schema.Hook
		body  string
		want  schema.Decision
	}{
		{"half an event", []schema.Hook{hook("x", closed, elsewhere)}, `{"tool_input":{`, schema.Deny},
		{"a name twice", []schema.Hook{hook("x", closed, elsewhere)}, `{"prompt":"a","prompt":"b"}`, schema.Deny},
		{"a sound one", []schema.Hook{hook("x", closed, elsewhere)}, `{"tool_input":{}}`, schema.None},
		{"bytes that are no UTF-8, which are read as U+FFFD", []schema.Hook{hook("x", closed, elsewhere)}, "{\"prompt\":\"\xff\"}", schema.None},
		{"half an event that nothing guards", []schema.Hook{hook("x", elsewhere)}, `{"tool_input":{`, schema.None},
	} {
		t.Run(c.is, func(t *testing.T) {
			inWorld(t, c.hooks, func(w *world) {
				w.build()
				v, _ := w.request(&dispatch.Request{Attempt: 1, Deadline: time.Now().Add(time.Minute), Body: []byte(c.body)})
				if v.Decision != c.want || len(v.HookErrors) > 0 != (c.want == schema.Deny) {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

package aggregator_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func watched(h *schema.Hook) { h.Mode = schema.Shadow }

// another starts one more aggregator on the bus, of this fabric or of a foreign one.
func (f *fabric) another(node, of string, lib library, hooks ...schema.Hook) *fabric {
	f.t.Helper()
	g := &fabric{t: f.t, server: f.server, shim: f.shim, reg: prometheus.NewPedanticRegistry()}
	g.local = workers.New(workers.Options{
		Name: "local-" + node, Pools: []string{schema.DefaultPool}, Capacity: 4, Logger: slog.New(slog.DiscardHandler),
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: lib},
		Freed:   func() { g.agg.Members().Freed(schema.DefaultPool) },
	})
	var err error
	g.agg, err = aggregator.Start(aggregator.Options{
		Events: bustest.Connect(f.t, f.server, "events-"+node), Work: bustest.Connect(f.t, f.server, "work-"+node),
		Fabric: of, Node: node, Local: g.local, Registerer: g.reg, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = g.agg.Drain(context.Background()) })
	g.activate(1, hooks...)
	return g
}

// status returns the answer to the control request "status" with this body.
func (f *fabric) status(body string) (st schema.FabricStatus) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	m, err := f.shim.RequestMsgWithContext(ctx, &nats.Msg{Subject: "hook.v1.ctl.status._", Data: []byte(body)})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := schema.Unmarshal(m.Data, &st); err != nil {
		f.t.Fatalf("%v: %s", err, m.Data)
	}
	return st
}

func numbered(i int) *nats.Msg {
	m := event(schema.PreToolUse)
	m.Header.Set(schema.HeaderID, fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", i))
	return m
}

func TestShadowCountsAreSummedUpOverAllBrokers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := library{
			"counts": says(schema.Allowed()), "denies": says(schema.Denied("not " + strings.Repeat("at all ", 100))),
			"quiet": says(schema.Result{}), "rewrites": says(schema.Rewritten(jsontext.Value(`{"command":"true"}`))),
		}
		hooks := []schema.Hook{hook("counts"), hook("denies", watched), hook("quiet", watched), hook("rewrites", watched)}
		f := start(t, lib, hooks...)
		g := f.another("second", "fabric-1", lib, hooks...)
		const calls = 64
		for i := range calls {
			want(t, f.ask(numbered(i)), schema.Allow, "counts:ok")
		}
		for hook, would := range map[string]schema.Decision{"denies": schema.Deny, "quiet": schema.Allow, "rewrites": schema.Allow} {
			one := f.value("shadow_total", "decided=allow", "hook="+hook, "would="+string(would))
			other := g.value("shadow_total", "decided=allow", "hook="+hook, "would="+string(would))
			if one < 1 || other < 1 || one+other != calls {
				t.Errorf("%s: they counted %v and %v calls of %d", hook, one, other, calls)
			}
		}
		if one, other := f.value("shadow_rewrites_total", "hook=rewrites"), g.value("shadow_rewrites_total", "hook=rewrites"); one+other != calls {
			t.Errorf("they counted %v and %v rewrites", one, other)
		}
		st := f.status(`{"shadow": true}`)
		for i := range st.Shadow {
			st.Shadow[i].Counts[0].Reason, _, _ = strings.Cut(st.Shadow[i].Counts[0].Reason, " ")
		}
		want := []schema.ShadowStatus{
			{Hook: "denies", Counts: []schema.ShadowCount{{
				Decided: schema.Allow, Would: schema.Deny, Count: calls, Last: "0199f3c1-6d1f-7e8a-9b2c-000000000063", Reason: "not",
			}}},
			{Hook: "quiet", Counts: []schema.ShadowCount{{Decided: schema.Allow, Would: schema.Allow, Count: calls}}},
			{Hook: "rewrites", Counts: []schema.ShadowCount{{Decided: schema.Allow, Would: schema.Allow, Count: calls}}},
		}
		if d := cmp.Diff(want, st.Shadow); d != "" || st.ConfigVersion != 1 {
			t.Errorf("version %d (-want +got):\n%s", st.ConfigVersion, d)
		}
	})
}

func TestAForeignFabricsShadowsAreNoneOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := library{"denies": says(schema.Denied("no"))}
		f := start(t, lib, hook("denies", watched))
		before := f.status(`{"shadow": true}`)
		f.another("foreign", "fabric-2", lib, hook("theirs", watched))
		if d := cmp.Diff([]schema.ShadowStatus{{Hook: "denies", Counts: []schema.ShadowCount{}}}, before.Shadow); d != "" {
			t.Errorf("before anything was asked (-want +got):\n%s", d)
		}
		for range 8 { // whichever of them answers
			if st := f.status(`{"shadow": true}`); len(st.Shadow) != 1 || (st.Shadow[0].Hook == "theirs") != (st.Fabric == "fabric-2") {
				t.Errorf("%s says %+v", st.Fabric, st.Shadow)
			}
		}
	})
}

// TestSummingUpHoldsNobodyUp checks that a request without sums gets its answer at once, also while
// sums are made.
func TestSummingUpHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x", watched))
		slow := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			f.status(`{"shadow": true}`)
			slow <- time.Since(began)
		}()
		st := f.status(``)
		if took := time.Since(began); took > 0 || st.Shadow != nil {
			t.Errorf("took %s: %+v", took, st.Shadow)
		}
		if took := <-slow; took <= 0 || took > time.Second {
			t.Errorf("the sums took %s", took)
		}
	})
}

func TestOnlyHooksThatAreStillWatchedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := library{"denies": says(schema.Denied("no")), "other": says(schema.Result{})}
		f := start(t, lib, hook("denies", watched), hook("other", watched))
		f.ask(event(schema.PreToolUse))
		const series = "shadow_total"
		if n := f.value(series, "decided=continue", "hook=denies", "would=deny"); n != 1 {
			t.Errorf("%v", n)
		}
		f.activate(2, hook("denies"), hook("other", watched))
		if n := f.value(series, "decided=continue", "hook=denies", "would=deny"); n != -1 {
			t.Errorf("the series of a hook that counts now has %v", n)
		}
		want := []schema.ShadowStatus{{Hook: "other", Counts: []schema.ShadowCount{{Decided: schema.Continue, Would: schema.Continue, Count: 1}}}}
		if d := cmp.Diff(want, f.status(`{"shadow": true}`).Shadow); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		f.activate(3)
		if n := f.value(series, "decided=continue", "hook=other", "would=continue"); n != -1 {
			t.Errorf("the series of a hook that is gone has %v", n)
		}
	})
}

func TestAStatusRequestThatCanNotBeReadIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		m, err := f.shim.RequestMsgWithContext(ctx, &nats.Msg{Subject: "hook.v1.ctl.status._", Data: []byte(`{"shadow": 3}`)})
		if err != nil || m.Header.Get(schema.HeaderServiceErrorCode) != schema.CodeBadRequest {
			t.Errorf("%v: %+v", err, m)
		}
	})
}

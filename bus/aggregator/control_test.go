package aggregator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// control makes a control request.
func (f *fabric) control(subject string) *nats.Msg {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := f.shim.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject})
	if err != nil {
		f.t.Fatalf("%s: %v", subject, err)
	}
	return m
}

func TestStatusTellsOfPoolsAndWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("missing"), hook("x", remote), hook("y", func(h *schema.Hook) { h.Pool = "nobody" }))
		f.worker("w").beat(schema.Beat{Capacity: 3, InFlight: 1, Versions: []uint64{1}, Draining: true, LoadErrors: map[string]string{"x": "no such module"}})
		synctest.Wait()
		m := f.control("hook.v1.ctl.status._")
		var got schema.FabricStatus
		if err := schema.Unmarshal(m.Data, &got); err != nil {
			t.Fatal(err)
		}
		want := schema.FabricStatus{
			Fabric: "fabric-1", Version: schema.Release, ConfigVersion: 1, Ready: true, Hooks: 3,
			Pools: []schema.PoolStatus{
				{Pool: "default", Workers: []schema.WorkerStatus{{Worker: "local", Capacity: 4, Versions: []uint64{1}}}},
				{Pool: "nobody", Workers: []schema.WorkerStatus{}},
				{Pool: "p", Workers: []schema.WorkerStatus{{Worker: "w", InFlight: 1, Capacity: 3, Draining: true, Versions: []uint64{1}}}},
			},
			LoadErrors: map[string]string{"missing": `there is no "missing"`, "x": "no such module"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestControlErrorsHaveACodeAndASentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		for subject, want := range map[string]struct{ code, says string }{
			"hook.v1.ctl.inject.agent1": {schema.CodeUnavailable, "keeps no queue"},
			"hook.v1.ctl.round.agent1":  {schema.CodeUnavailable, "keeps no rounds"},
			"hook.v1.ctl.ack._":         {schema.CodeBadRequest, "about one agent"},
			"hook.v1.ctl.explode._":     {schema.CodeBadRequest, `unknown control verb "explode"; write status`},
			"hook.v1.ctl.STATUS._":      {schema.CodeBadRequest, "is no control verb"},
			"hook.v1.ctl.status.=2f":    {schema.CodeBadRequest, "agent"},
		} {
			m := f.control(subject)
			var e schema.ControlError
			if err := schema.Unmarshal(m.Data, &e); err != nil {
				t.Errorf("%s: %v", subject, err)
			}
			if e.Code != want.code || !strings.Contains(e.Message, want.says) {
				t.Errorf("%s: %+v", subject, e)
			}
			if m.Header.Get(schema.HeaderServiceErrorCode) != e.Code || m.Header.Get(schema.HeaderServiceError) != e.Message {
				t.Errorf("%s: %v", subject, m.Header)
			}
		}
	})
}

func TestTheAggregatorIsAMicroService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		m := f.control("$SRV.INFO.hookfabric-aggregator")
		if s := string(m.Data); !strings.Contains(s, `"fabric":"fabric-1"`) || !strings.Contains(s, `"hook.v1.ctl.*.*"`) {
			t.Error(s)
		}
	})
}

func TestAnAnswerThatNoMessageHoldsIsAnErrorThatSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		for _, name := range []string{"v", "w"} {
			f.worker(name).beat(schema.Beat{Capacity: 1, LoadErrors: map[string]string{name: strings.Repeat("x", schema.MaxPayload*2/3)}})
		}
		synctest.Wait()
		m := f.control("hook.v1.ctl.status._")
		var e schema.ControlError
		if err := schema.Unmarshal(m.Data, &e); err != nil || e.Code != schema.CodeInternal || !strings.Contains(e.Message, "takes at most 8388608 in one message") {
			t.Errorf("%+v %v", e, err)
		}
	})
}

package aggregator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
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
		f := start(t, library{}, hook("missing"), hook("x", remote), hook("y", func(h *schema.Hook) { h.Pool = "unserved" }))
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
				{Pool: "p", Workers: []schema.WorkerStatus{{Worker: "w", InFlight: 1, Capacity: 3, Draining: true, Versions: []uint64{1}}}},
				{Pool: "unserved", Workers: []schema.WorkerStatus{}},
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
			"hook.v1.ctl.inject.agent1": {schema.CodeUnavailable, "does not store messages for agents"},
			"hook.v1.ctl.round.agent1":  {schema.CodeUnavailable, "does not store rounds"},
			"hook.v1.ctl.ack._":         {schema.CodeBadRequest, "about one agent"},
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

// TestARequestComesToTheConnectionOfItsVerb checks that the server answers a request with an
// unknown verb, and that a request reaches only the connection of its verb, once.
func TestARequestComesToTheConnectionOfItsVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		control, requests := bustest.Connect(t, s, "control"), bustest.Connect(t, s, "requests")
		f := startOn(t, s, aggregator.Options{Memory: newMemory().all(), Control: control, Requests: requests}, library{})
		var at [2]uint64
		came := func() (n [2]uint64) {
			synctest.Wait()
			now := [2]uint64{control.Stats().InMsgs, requests.Stats().InMsgs}
			n, at = [2]uint64{now[0] - at[0], now[1] - at[1]}, now
			return n
		}
		came()
		for subject, want := range map[string][2]uint64{"status._": {1, 0}, "inject.a": {1, 0}, "fetch.a": {0, 1}, "policy._": {0, 1}} {
			f.request(subject, `{"content":"x"}`)
			if got := came(); got != want {
				t.Errorf("%s came %v times to the connections for operators and agents, want %v", subject, got, want)
			}
		}
		for _, verb := range []string{"explode", "STATUS"} {
			err := bus.Ask(t.Context(), f.shim, "hook.v1.ctl."+verb+"._", struct{}{}, new(struct{}))
			if got := came(); !errors.Is(err, nats.ErrNoResponders) || !strings.Contains(err.Error(), "have a release with this verb") || got != [2]uint64{} {
				t.Errorf("%s: %v; it came %v times", verb, err, got)
			}
		}
	})
}

func TestTheAggregatorIsAMicroService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		for service, subject := range map[string]string{"hookfabric-aggregator": "hook.v1.ctl.freeze.*", "hookfabric-aggregator-requests": "hook.v1.ctl.fetch.*"} {
			if s := string(f.control("$SRV.INFO." + service).Data); !strings.Contains(s, `"fabric":"fabric-1"`) || !strings.Contains(s, subject) {
				t.Error(s)
			}
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
		if err := schema.Unmarshal(m.Data, &e); err != nil || e.Code != schema.CodeInternal || !strings.Contains(e.Message, "accepts at most 8388608 in one message") {
			t.Errorf("%+v %v", e, err)
		}
	})
}

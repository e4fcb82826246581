package loop_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// far is a fabric with verdicts from the test, and its client.
type far struct {
	*bustest.Fabric
	client *client.Client
	mu     sync.Mutex
	asked  []question
}

// silence is the decision of a verdict that is lost.
const silence schema.Decision = "silence"

// question is one event as the fabric received it.
type question struct {
	schema.Event
	mute bool
	acks []string
}

// onlyAt makes a fabric deliver items at one event only. At other events it also ignores
// acknowledgements, and the client repeats them.
func onlyAt(all func(*nats.Msg, bus.EventRequest) bool, at schema.EventType) func(*nats.Msg, bus.EventRequest) bool {
	return func(m *nats.Msg, q bus.EventRequest) bool {
		q.Mute = q.Mute || q.Event != at
		return all(m, q)
	}
}

// fabric starts one. judge changes the verdict of the queue; nil: no change.
func fabric(t *testing.T, judge func(e *schema.Event, v *schema.Verdict)) *far {
	t.Helper()
	s := bustest.Start(t)
	f := &far{Fabric: bustest.NewFabric("fabric")}
	f.OnEvent = func(m *nats.Msg, q bus.EventRequest) bool {
		e, err := schema.DecodeEvent(q.Body, q.Routing)
		if err != nil {
			t.Error(err)
			return false
		}
		f.mu.Lock()
		f.asked = append(f.asked, question{*e, q.Mute, q.Acks})
		f.mu.Unlock()
		v := &schema.Verdict{Decision: schema.Continue, Fabric: f.ID}
		if !q.Mute {
			v = f.Judge(q)
		}
		if judge != nil {
			judge(e, v)
		}
		if v.Decision != silence {
			bustest.Respond(m, v)
		}
		return true
	}
	nc := bustest.Connect(t, s, "aggregator")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.Serve(ctx, nc); err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(ctx, client.Options{InProcess: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f.client = c
	return f
}

// questions returns the events that the fabric received.
func (f *far) questions() []question {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]question(nil), f.asked...)
}

// left returns the items that wait.
func (f *far) left() []schema.Injection {
	f.Lock()
	defer f.Unlock()
	return append([]schema.Injection(nil), f.Items...)
}

// events returns the types of the received events.
func (f *far) events() (types []schema.EventType) {
	for _, q := range f.questions() {
		types = append(types, q.HookType)
	}
	return types
}

// of returns the last event of a type.
func (f *far) of(t schema.EventType) (last question) {
	for _, q := range f.questions() {
		if q.HookType == t {
			last = q
		}
	}
	return last
}

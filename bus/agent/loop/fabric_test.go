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
	"github.com/hookfabric/hookfabric/bus/client/clienttest"
	"github.com/hookfabric/hookfabric/schema"
)

// far is a fabric whose verdicts the test makes, and a client that asks it.
type far struct {
	*clienttest.Fabric
	client *client.Client
	mu     sync.Mutex
	asked  []question
}

// silence is the decision of a verdict that gets lost.
const silence schema.Decision = "silence"

// question is one event as it came.
type question struct {
	schema.Event
	mute bool
	acks []string
}

// onlyAt has a fabric hand over what waits at one event only. At others it hears no
// acknowledgements either; who said them says them again.
func onlyAt(all func(*nats.Msg, bus.EventRequest) bool, at schema.EventType) func(*nats.Msg, bus.EventRequest) bool {
	return func(m *nats.Msg, q bus.EventRequest) bool {
		q.Mute = q.Mute || q.Event != at
		return all(m, q)
	}
}

// fabric starts one. judge changes what the queue makes of an event; nil: nothing does.
func fabric(t *testing.T, judge func(e *schema.Event, v *schema.Verdict)) *far {
	t.Helper()
	s := bustest.Start(t)
	f := &far{Fabric: clienttest.New("fabric")}
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
			clienttest.Respond(m, v)
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

// questions are those that came.
func (f *far) questions() []question {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]question(nil), f.asked...)
}

// left are the items that wait.
func (f *far) left() []schema.Injection {
	f.Lock()
	defer f.Unlock()
	return append([]schema.Injection(nil), f.Items...)
}

// events are the types of those.
func (f *far) events() (types []schema.EventType) {
	for _, q := range f.questions() {
		types = append(types, q.HookType)
	}
	return types
}

// of is the last question about a type.
func (f *far) of(t schema.EventType) (last question) {
	for _, q := range f.questions() {
		if q.HookType == t {
			last = q
		}
	}
	return last
}

package fabric_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// leaseOver is when what was not acknowledged goes out again.
const leaseOver = 31 * time.Second

// A shimLife is a shim of one agent, until it dies.
type shimLife struct {
	f *fabric
	c *client.Client
}

// shim begins a shim's life.
func (f *fabric) shim(kept ...client.Handover) *shimLife {
	f.t.Helper()
	c, err := client.Connect(f.t.Context(), client.Options{InProcess: f.broker, Logger: slog.New(f.log)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	c.Recall(kept...)
	return &shimLife{f, c}
}

// ask asks after a tool of the agent "a" returned.
func (s *shimLife) ask() *schema.Verdict {
	s.f.t.Helper()
	v, err := s.c.Ask(s.f.t.Context(), &schema.Event{HookType: schema.PostToolUse, AgentID: "a", SessionID: "s", ToolName: "Read"})
	if err != nil {
		s.f.t.Fatal(err)
	}
	return v
}

// tell puts a text for the agent "a" into the queue.
func (f *fabric) tell(text string) {
	f.t.Helper()
	f.request(schema.VerbInject, "a", &schema.InjectRequest{Content: text}, &schema.Receipt{})
}

// request is one control request.
func (f *fabric) request(verb, agent string, req, answer any) {
	f.t.Helper()
	subject, err := bus.ControlSubject(verb, agent)
	if err != nil {
		f.t.Fatal(err)
	}
	data, err := schema.Marshal(req)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	m, err := f.connect("operator").RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		f.t.Fatal(err)
	}
	if said := m.Header.Get(schema.HeaderServiceError); said != "" {
		f.t.Fatalf("%s: %s", verb, said)
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		f.t.Fatal(err)
	}
}

// waits counts what waits for the agent "a", leased or not.
func (f *fabric) waits() int {
	f.t.Helper()
	var p schema.PendingAnswer
	f.request(schema.VerbPending, "a", &schema.PendingRequest{}, &p)
	return p.Total
}

// brings holds a verdict to the texts that it must bring, in order.
func (f *fabric) brings(v *schema.Verdict, texts ...string) {
	f.t.Helper()
	if len(v.Injections) == 0 && len(texts) == 0 {
		return
	}
	var all strings.Builder
	for _, in := range v.Injections {
		all.WriteString(in.Content)
	}
	rest := all.String()
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			f.t.Fatalf("the verdict brings %q, not %q", all.String(), texts)
		}
		rest = after
	}
	if len(texts) == 0 {
		f.t.Fatalf("the verdict brings %q", all.String())
	}
}

func TestAShimDeliversItems(t *testing.T) {
	inBubbles(t, []scenario{
		{"a shim that dies with the verdict in its hands loses nothing", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			dead := f.shim()
			f.brings(dead.ask(), "one")
			dead.c.Close()
			f.brings(f.shim().ask())
			<-time.After(leaseOver)
			next := f.shim()
			v := next.ask()
			f.brings(v, "one")
			if err := next.c.Ack(t.Context(), "a", v.EventID); err != nil || f.waits() != 0 {
				t.Errorf("%v; %d items wait", err, f.waits())
			}
		}},
		{"one that dies before it acknowledges lets it come twice, and not more often", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			dead := f.shim()
			v := dead.ask()
			f.brings(v, "one")
			dead.c.Handed(v.EventID)
			dead.c.Close()
			<-time.After(leaseOver)
			next := f.shim()
			v = next.ask()
			f.brings(v, "one")
			next.c.Handed(v.EventID)
			<-time.After(leaseOver)
			f.brings(f.shim().ask())
		}},
		{"what one could not acknowledge the next one does, and it does not come twice", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			first := f.shim()
			v := first.ask()
			f.brings(v, "one")
			kept, ok := first.c.Brought(v.EventID)
			late, cancel := context.WithCancel(t.Context())
			cancel()
			if err := first.c.Ack(late, "a", v.EventID); err == nil || !ok {
				t.Fatalf("it was acknowledged: %+v", kept)
			}
			first.c.Close()
			<-time.After(leaseOver)
			// The lease has ended, but no other event took the item: the late acknowledgement counts.
			f.tell("two")
			next := f.shim(kept)
			v = next.ask()
			f.brings(v, "two")
			next.c.Handed(v.EventID)
			<-time.After(leaseOver)
			f.brings(next.ask())
			if n := f.waits(); n != 0 {
				t.Errorf("%d items wait", n)
			}
		}},
		{"what went out again although the agent has it is cut and acknowledged", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			first := f.shim()
			v := first.ask()
			kept, _ := first.c.Brought(v.EventID)
			first.c.Close()
			<-time.After(leaseOver)
			// Another shim takes it along before the first one's word is heard.
			stalled := f.shim()
			f.brings(stalled.ask(), "one")
			stalled.c.Close()
			<-time.After(leaseOver)
			kept.Events = nil
			next := f.shim(kept)
			f.brings(next.ask())
			<-time.After(3 * time.Second)
			if n := f.waits(); n != 0 {
				t.Errorf("%d items wait", n)
			}
		}},
		{"a daemon acknowledges with the agent's next question", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			daemon := f.shim()
			for _, text := range []string{"one", "two", "three"} {
				f.tell(text)
				v := daemon.ask()
				f.brings(v, text)
				daemon.c.Handed(v.EventID)
			}
			daemon.ask()
			<-time.After(time.Second)
			if n := f.waits(); n != 0 {
				t.Errorf("%d items wait", n)
			}
			daemon.ask() // confirms what rode on the question before
			if left := daemon.c.Noted("a").Events; len(left) != 0 {
				t.Errorf("still noted: %v", left)
			}
		}},
		{"and after two seconds without one", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			daemon := f.shim()
			v := daemon.ask()
			daemon.c.Handed(v.EventID)
			<-time.After(1900 * time.Millisecond)
			if n := f.waits(); n != 1 {
				t.Errorf("after 1.9 s %d items wait", n)
			}
			<-time.After(200 * time.Millisecond)
			if n := f.waits(); n != 0 || len(daemon.c.Noted("a").Events) != 0 {
				t.Errorf("after 2.1 s %d items wait", n)
			}
		}},
		{"a verdict that is held back keeps its lease for as long", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			holder, other := f.shim(), f.shim()
			v := holder.ask()
			for range 30 {
				<-time.After(10 * time.Second)
				if err := holder.c.Hold(t.Context(), "a", v.EventID); err != nil {
					t.Fatal(err)
				}
				f.brings(other.ask())
			}
			if err := holder.c.Ack(t.Context(), "a", v.EventID); err != nil || f.waits() != 0 {
				t.Errorf("%v; %d items wait", err, f.waits())
			}
		}},
		{"a repeated event gets the same items, and none after the delivery", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			s := f.shim()
			e := &schema.Event{HookType: schema.PostToolUse, AgentID: "a", ToolName: "Read", EventID: uuid.NewString()}
			for range 3 {
				v, err := s.c.Ask(t.Context(), e)
				if err != nil {
					t.Fatal(err)
				}
				f.brings(v, "one")
				<-time.After(leaseOver)
			}
			s.c.Handed(e.EventID)
			if v, err := s.c.Ask(t.Context(), e); err != nil || len(v.Injections) != 0 {
				t.Errorf("%+v, %v", v, err)
			}
		}},
		{"a drain brings all that waits, once", func(t *testing.T) {
			f := start(t, "presets: [delivery]\n")
			f.tell("one")
			f.tell("two")
			s := f.shim()
			d, err := s.c.Drain(t.Context(), "a", "s")
			if err != nil || !strings.Contains(d.Content, "one") || !strings.Contains(d.Content, "two") {
				t.Fatalf("%+v, %v", d, err)
			}
			if h, ok := s.c.Brought(d.EventID); !ok || !slices.Equal(h.Events, []string{d.EventID}) || len(h.Sequences) != 2 {
				t.Errorf("%+v", h)
			}
			if err := s.c.Ack(t.Context(), "a", d.EventID); err != nil {
				t.Fatal(err)
			}
			if d, err = s.c.Drain(t.Context(), "a", "s"); err != nil || d.Content != "" || f.waits() != 0 {
				t.Errorf("%+v, %v; %d items wait", d, err, f.waits())
			}
		}},
	})
}

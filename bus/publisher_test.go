package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/schema"
)

// connections returns connections of each kind.
func connections(t *testing.T) map[string]*nats.Conn {
	t.Helper()
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	here := bustest.Connect(t, s, "here")
	far, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Close)
	foreign, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(foreign.Close)
	ca := bustest.NewAuthority(t, "ours")
	secure := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", TLS: ca.Issue(t, "server")})
	wrapped, err := bus.Connect(t.Context(), bus.Options{URL: secure.ClientURL(), TLS: certs.Files{CA: ca.File}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wrapped.Close)
	plain, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	return map[string]*nats.Conn{
		"in this process": here, "over the network": far, "inside TLS": wrapped,
		"made without bus.Connect": foreign, "with the plain client": plain,
	}
}

// next returns the next message of sub.
func next(t *testing.T, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func flush(t *testing.T, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
}

func listening(t *testing.T, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// TestAPublisherPublishesAsTheClientDoes compares messages and errors of a publisher with those of
// the client.
func TestAPublisherPublishesAsTheClientDoes(t *testing.T) {
	var e bus.Envelope
	r := schema.Routing{Event: schema.PreToolUse, Agent: "a", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", Tool: "Bash ü\r\n", Session: " s"}
	body := []byte(strings.Repeat("\r\n{}", 5000))
	messages := map[string]*bus.Message{
		"only a subject":         {Subject: "some.thing"},
		"an answer":              {Subject: "some.thing", Data: []byte("{}")},
		"a request":              {Subject: "some.thing", Reply: "back.here", Data: body},
		"headers":                e.Event("some.thing", r, 2, 1500*time.Millisecond, []string{r.ID}, body),
		"headers and no body":    new(bus.Envelope).Batch("some.thing", &schema.Batch{Routing: r, Hooks: []int{1, 2}, Fabric: "f\r\nx"}),
		"no subject":             {Data: body},
		"a subject with a blank": {Subject: "some thing", Data: body},
		"a reply with a command": {Subject: "some.thing", Reply: "back\r\nPUB x 0\r\n", Data: body},
		"too much":               {Subject: "some.thing", Data: make([]byte, schema.MaxPayload+1)},
	}
	for kind, nc := range connections(t) {
		sub, out := listening(t, nc, "some.*"), bus.NewPublisher(nc)
		for name, m := range messages {
			t.Run(name+" "+kind, func(t *testing.T) {
				wantErr, gotErr := nc.PublishMsg(m.Msg()), out.Publish(m)
				if !errors.Is(gotErr, wantErr) {
					t.Fatalf("the publisher fails with %v and the client with %v", gotErr, wantErr)
				}
				if wantErr != nil {
					return
				}
				want, got := next(t, sub), next(t, sub)
				if d := cmp.Diff(want, got, cmpopts.IgnoreFields(nats.Msg{}, "Sub"), cmpopts.IgnoreUnexported(nats.Msg{})); d != "" {
					t.Errorf("another message arrives (-client +publisher):\n%s", d)
				}
			})
		}
	}
}

func TestAFlushCoversMessagesOfAPublisher(t *testing.T) {
	for kind, nc := range connections(t) {
		t.Run(kind, func(t *testing.T) {
			const some = 500
			sub, out := listening(t, nc, "some.thing"), bus.NewPublisher(nc)
			for i := range some {
				if err := out.Publish(&bus.Message{Subject: "some.thing", Data: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
			flush(t, nc)
			if n, _, err := sub.Pending(); n != some || err != nil {
				t.Errorf("%d of %d messages arrived before the flush ended: %v", n, some, err)
			}
			for i := range some {
				if m := next(t, sub); string(m.Data) != fmt.Sprint(i) {
					t.Fatalf("%s comes in place of %d", m.Data, i)
				}
			}
		})
	}
}

func TestAPublisherSurvivesAReconnect(t *testing.T) {
	for kind, nc := range connections(t) {
		t.Run(kind, func(t *testing.T) {
			sub, out := listening(t, nc, "some.thing"), bus.NewPublisher(nc)
			back := nc.StatusChanged(nats.CONNECTED)
			for i := range 3 {
				if err := nc.ForceReconnect(); err != nil {
					t.Fatal(err)
				}
				<-back
				flush(t, nc)
				if err := out.Publish(&bus.Message{Subject: "some.thing", Data: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
				if m := next(t, sub); string(m.Data) != fmt.Sprint(i) {
					t.Fatalf("%s comes in place of %d", m.Data, i)
				}
			}
			nc.Close()
			if err := out.Publish(&bus.Message{Subject: "some.thing"}); !errors.Is(err, nats.ErrConnectionClosed) {
				t.Errorf("publishing on a closed connection gave %v", err)
			}
		})
	}
}

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// parted is a fabric with a second broker that can be lost.
type parted struct {
	*spread
	wire *bustest.Wire
	lost *brokerProcess
	// calls and changes are what the test itself asked, and what it was answered.
	calls, changes *exchange
}

// An exchange is messages that the test has sent and the answers to them.
type exchange struct {
	name string
	sub  *nats.Subscription
	sent int
	// heard are the answers, by the subjects that they came on.
	heard map[string]*nats.Msg
}

func (s *spread) exchange(t testing.TB, name string) *exchange {
	t.Helper()
	sub, err := s.nc.SubscribeSync(name + ".*")
	if err != nil {
		t.Fatal(err)
	}
	return &exchange{name: name, sub: sub, heard: make(map[string]*nats.Msg)}
}

// send sends a message and does not wait for its answer.
func (x *exchange) send(t testing.TB, nc *nats.Conn, m *nats.Msg) {
	t.Helper()
	m.Reply = fmt.Sprintf("%s.%d", x.name, x.sent)
	x.sent++
	if err := nc.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
}

// next returns the next answer within a while, without heartbeats; nil: no answer came.
func (x *exchange) next(within time.Duration) *nats.Msg {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for {
		m, err := x.sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil
		}
		if m.Header.Get(schema.HeaderBeat) == "" {
			x.heard[m.Subject] = m
			return m
		}
	}
}

func startParted(t testing.TB) *parted {
	t.Helper()
	s := startSpread(t, 1, 2)
	p := &parted{spread: s, wire: bustest.StartWire(t, strings.TrimPrefix(s.url, "nats://")), calls: s.exchange(t, "_INBOX.calls"), changes: s.exchange(t, "_INBOX.changes")}
	p.lost = startBroker(t, "--nats", "nats://"+p.wire.Addr())
	p.awaitWorkers(t)
	return p
}

// send asks about n calls, which can wait for a minute.
func (p *parted) send(t testing.TB, n int) {
	t.Helper()
	subject, err := bus.EventSubject("tester", schema.PreToolUse)
	for range n {
		id, idErr := uuid.NewV7()
		if err = errors.Join(err, idErr); err != nil {
			t.Fatal(err)
		}
		p.calls.send(t, p.nc, bus.EventMsg(subject, schema.Routing{ID: id.String(), Tool: "Tool"}, 1, time.Minute, nil, []byte(`{"tool_name":"Tool"}`)))
	}
}

// insist makes mark n the active configuration and returns its version. What
// the lost broker was asked is asked again: from outside, the two are one.
func (p *parted) insist(t testing.TB, n int) uint64 {
	t.Helper()
	for range 20 {
		began := false
		p.change(t, n)
		for until := time.Now().Add(1500 * time.Millisecond); began || time.Now().Before(until); {
			within := 50 * time.Millisecond
			if began = began || p.proposed(t); began {
				within = 2 * lapse
			}
			m := p.changes.next(within)
			if m == nil && began {
				t.Fatalf("the request to apply mark %d was never answered", n)
			}
			if m == nil {
				continue
			}
			var a schema.ConfigAnswer
			if err := schema.Unmarshal(m.Data, &a); err != nil || a.Refused || a.Version == 0 {
				t.Fatalf("the request to apply mark %d was answered %s", n, m.Data)
			}
			if a.Changed {
				p.says[a.Version] = promise(a.Version, n)
				return a.Version
			}
		}
	}
	t.Fatalf("no broker took the request to apply mark %d", n)
	return 0
}

// change asks once to apply mark n.
func (p *parted) change(t testing.TB, n int) {
	t.Helper()
	subject, err := bus.ControlSubject("config", "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := schema.Marshal(schema.ConfigRequest{Action: schema.ActionApply, File: "mark.yaml", Dir: p.dir, Source: mark(n)})
	if err != nil {
		t.Fatal(err)
	}
	p.changes.send(t, p.nc, &nats.Msg{Subject: subject, Data: body})
}

// unheard returns the number of requests to change without an answer.
func (p *parted) unheard() int { return p.changes.sent - len(p.changes.heard) }

// awaitBack waits until the lost broker answers calls again, and returns how many calls from the time of
// the cut it answered. It must answer with the newest version.
func (p *parted) awaitBack(t testing.TB, newest uint64) (late int) {
	t.Helper()
	before, fresh := p.calls.sent, false
	err := eventually("the lost broker answers", func() bool {
		if !fresh {
			p.send(t, 1)
		}
		for m := p.calls.next(time.Millisecond); m != nil; m = p.calls.next(time.Millisecond) {
			var v schema.Verdict
			if err := schema.Unmarshal(m.Data, &v); err != nil {
				t.Fatal(err)
			}
			if !p.byLost(&v) {
				continue
			}
			if got := sightOf(&v); got != p.says[newest] {
				t.Errorf("the lost broker came back with %+v; want %+v", got, p.says[newest])
			}
			var number int
			if _, err := fmt.Sscanf(m.Subject, p.calls.name+".%d", &number); err != nil {
				t.Fatal(err)
			}
			if number < before {
				late++
			}
			fresh = fresh || number >= before
		}
		return fresh
	})
	if err != nil {
		t.Fatal(err)
	}
	return late
}

// byLost reports whether the lost broker is behind a verdict: hooks of the
// pool "default" run in the process that answers.
func (p *parted) byLost(v *schema.Verdict) bool {
	return slices.ContainsFunc(v.ExecutedHooks, func(x schema.ExecutedHook) bool {
		return strings.Contains(x.Worker, p.lost.node())
	})
}

// checkRefused fails the test if the lost broker did what it was asked long ago,
// or, where all of that has reached it, did not say that it would not.
func (p *parted) checkRefused(t testing.TB, newest uint64, all bool) {
	t.Helper()
	for m := p.changes.next(time.Second); m != nil; m = p.changes.next(time.Second) {
		if m.Header.Get(schema.HeaderServiceErrorCode) != schema.CodeUnavailable {
			t.Errorf("a request that waited at the lost broker was answered %s", m.Data)
		}
	}
	if n := p.unheard(); all && n > 0 {
		t.Errorf("%d requests were never answered", n)
	}
	a := answerOf(t, p.operate(t, 0, "config", "history", "--json"))
	if a.Version != newest {
		t.Errorf("version %d is active, not %d: %+v", a.Version, newest, a.History)
	}
}

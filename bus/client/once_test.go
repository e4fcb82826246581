package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// During a client's life its agent reads every item once, with any loss of answers,
// acknowledgements, objects and leases.
func TestEachItemIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		page := 0
		rapid.Check(inBubble{t}, func(r *rapid.T) {
			page++
			run := &onceRun{store: s, seen: map[uint64]int{}}
			run.renew(fmt.Sprintf("f-%d", page))
			for range rapid.IntRange(5, 40).Draw(r, "steps") {
				run.step(r)
			}
			run.finish(r)
			for seq := range run.next {
				if n := run.seen[seq+1]; n != 1 {
					r.Fatalf("item %d was handed over %d times", seq+1, n)
				}
			}
		})
	})
}

// inBubble is a test without a deadline, because the bubble's clock is not real.
type inBubble struct{ *testing.T }

type onceRun struct {
	*store

	next uint64
	seen map[uint64]int // by sequence
	// ack and fetch are the current fate of such requests.
	ack, fetch string
}

// renew starts another fabric, so that the client's memory is void.
func (o *onceRun) renew(id string) {
	o.Lock()
	defer o.Unlock()
	o.ID, o.Items, o.Silent, o.Deaf = id, nil, false, false
	clear(o.Leases)
	o.Answer = func(verb string, m *nats.Msg) bool {
		what := o.ack
		if verb == schema.VerbFetch {
			what = o.fetch
		}
		switch what {
		case "refused":
			bustest.Refuse(m, schema.CodeUnavailable, "not now")
			return true
		case "lost":
			return true
		case "answer lost":
			m.Reply = ""
		}
		return false
	}
}

func (o *onceRun) step(r *rapid.T) {
	switch rapid.SampledFrom([]string{"put", "put", "ask", "ask", "ask", "pass", "trouble"}).Draw(r, "step") {
	case "put":
		o.put(r)
	case "ask":
		o.ask(r, rapid.SampledFrom([]string{"handed over", "handed over", "agent died before"}).Draw(r, "then"))
	case "pass":
		pass(time.Duration(rapid.IntRange(0, 40_000).Draw(r, "ms")) * time.Millisecond)
	case "trouble":
		fate := rapid.SampledFrom([]string{"", "refused", "lost", "answer lost"})
		o.Lock()
		o.Silent, o.Deaf = rapid.Bool().Draw(r, "silent"), rapid.Bool().Draw(r, "deaf")
		o.ack, o.fetch = fate.Draw(r, "acks"), fate.Draw(r, "fetches")
		o.Unlock()
	}
}

func (o *onceRun) put(r *rapid.T) {
	o.next++
	in := bustest.Item(o.next, fmt.Sprint("text ", o.next))
	if rapid.Bool().Draw(r, "large") {
		in.Object, in.Content = o.Object(in.Content), ""
	}
	if rapid.Bool().Draw(r, "two in one") {
		in.Sequences = []uint64{o.next, o.next + 1}
		o.next++
		in.Sequence = o.next
	}
	o.Put(in)
}

// ask asks, and marks the items as delivered or ends the process.
func (o *onceRun) ask(r *rapid.T, then string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	v, err := o.client.Ask(ctx, event())
	if err != nil {
		r.Fatal(err)
	}
	if then != "handed over" {
		return
	}
	for _, in := range v.Injections {
		if strings.HasPrefix(in.Content, "(A message of") {
			continue
		}
		for _, seq := range slices.Compact(append(in.Sequences, in.Sequence)) {
			o.seen[seq]++
		}
	}
	o.client.Handed(v.EventID)
}

// finish ends all faults and waits until no item waits.
func (o *onceRun) finish(r *rapid.T) {
	o.Lock()
	o.Silent, o.Deaf, o.ack, o.fetch = false, false, "", ""
	o.Unlock()
	for range 5 {
		o.ask(r, "handed over")
		pass(bustest.LeaseFor + time.Second)
	}
	o.Lock()
	defer o.Unlock()
	if len(o.Items) != 0 {
		r.Fatalf("%d items still wait: %+v", len(o.Items), o.Items)
	}
}

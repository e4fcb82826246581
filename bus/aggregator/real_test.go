package aggregator_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// node is a broker's share of a fabric with a memory that is really stored.
type node struct {
	*fabric
	queue *queue.Queue
	full  *atomic.Bool // the queue takes nothing of this broker's
	lines []*nats.Conn // to events and to workers
}

// fillable is a queue that takes nothing while it is full.
type fillable struct {
	*queue.Queue

	full *atomic.Bool
}

func (q fillable) Enqueue(ctx context.Context, it *schema.Item) (schema.Receipt, error) {
	if q.full.Load() {
		return schema.Receipt{}, queue.ErrFull
	}
	return q.Queue.Enqueue(ctx, it)
}

// die simulates a broker that is killed: its connections end without a message.
func (n *node) die() {
	for _, nc := range n.lines {
		nc.Close()
	}
}

// delivering returns the hooks that deliver everything.
func delivering() []schema.Hook {
	var all []schema.Hook
	for _, handler := range schema.DeliveryStages() {
		all = append(all, stage(handler, schema.PostToolUse))
	}
	return append(all, stage(schema.RoundTimeoutPre, schema.PreToolUse))
}

// join starts a broker on the server, which others may use too.
func join(t *testing.T, s *server.Server, name string) *node {
	t.Helper()
	n := &node{full: new(atomic.Bool), fabric: &fabric{t: t, server: s, shim: bustest.Connect(t, s, "shim-"+name), reg: prometheus.NewPedanticRegistry()}}
	js, err := jetstream.New(bustest.Connect(t, s, "state-"+name))
	if err != nil {
		t.Fatal(err)
	}
	ledger := observe.NewLedger(n.reg, slog.New(slog.DiscardHandler))
	store, err := objects.Open(t.Context(), js, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	all, err := rounds.Open(t.Context(), js, rounds.Options{Conflict: ledger.Conflict})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Close(context.Background()) })
	who, err := sessions.Open(t.Context(), js, sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = who.Close(context.Background()) })
	finish := func(ctx context.Context, agent string, it *schema.Item) error {
		if it.Producer != deliver.RoundProducer {
			return nil
		}
		return all.Warned(ctx, agent, it.Number)
	}
	if n.queue, err = queue.Open(t.Context(), js, queue.Options{Finish: finish, Watch: ledger.Queue()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.queue.Close(context.Background()) })
	n.lines = []*nats.Conn{bustest.Connect(t, s, "events-"+name), bustest.Connect(t, s, "work-"+name)}
	n.agg, err = aggregator.Start(aggregator.Options{
		Events: n.lines[0], Work: n.lines[1], Fabric: "fabric-1", Node: name,
		Memory: stores.Memory{Queue: fillable{n.queue, n.full}, Rounds: all, Sessions: who, Objects: store}, Stages: stages, Ledger: ledger, Registerer: n.reg, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.agg.Drain(context.Background()) })
	if err := n.agg.Activate(schema.Config{Version: 1, Hooks: delivering()}); err != nil {
		t.Fatal(err)
	}
	return n
}

// inject puts a text into the queue of agent "a".
func (n *node) inject(text string) {
	n.t.Helper()
	if _, failed := n.request("inject.a", `{"content":"`+text+`"}`); failed != nil {
		n.t.Fatal(failed)
	}
}

// texts returns the numbered texts in a verdict, in order: "text 7".
func texts(v schema.Verdict) (all []string) {
	for _, in := range v.Injections {
		for word := range strings.FieldsSeq(in.Content) {
			if strings.HasPrefix(word, "text-") {
				all = append(all, word)
			}
		}
	}
	return all
}

func TestWhatIsAcceptedIsHandedOverOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		for i := range 3 {
			n.inject(fmt.Sprintf("text-%d", i))
		}
		v := n.ask(event(schema.PostToolUse))
		if got := texts(v); !slices.Equal(got, []string{"text-0", "text-1", "text-2"}) {
			t.Fatalf("%q: %+v", got, v)
		}
		n.inject("text-3")
		if got := texts(n.ask(with(event(schema.PostToolUse), id(2), 1))); len(got) > 0 {
			t.Errorf("%q came before what is before it was handed over", got)
		}
		if got := texts(n.ask(with(event(schema.PostToolUse), eventID, 2))); len(got) != 3 {
			t.Errorf("asked again it brings %q", got)
		}
		v = n.ask(with(event(schema.PostToolUse), id(3), 1, eventID))
		if len(v.Acked) == 0 { // it did not ride in a claim
			<-after1m()
			v = n.ask(with(event(schema.PostToolUse), id(4), 1, eventID))
		}
		if got := texts(v); !slices.Equal(got, []string{"text-3"}) || !slices.Equal(v.Acked, []string{eventID}) {
			t.Errorf("%q, acked %q", got, v.Acked)
		}
		if delivered := n.value("injections_delivered_total", "source=human"); delivered != 3 {
			t.Errorf("%v were counted", delivered)
		}
	})
}

func TestWhatNobodyAcknowledgesComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		n.inject("text-0")
		first := n.ask(event(schema.PostToolUse))
		<-time.After(queue.LeaseFor + time.Second)
		again := n.ask(with(event(schema.PostToolUse), id(2), 1))
		if got := texts(again); len(texts(first)) != 1 || len(got) != 1 {
			t.Errorf("%q, then %q", texts(first), got)
		}
		if n.value("injections_redelivered_total") != 1 || n.value("lease_expirations_total") != 1 {
			t.Error("it was not counted")
		}
	})
}

func TestAnotherBrokerGivesTheSameEventTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		one := join(t, s, "one")
		one.inject("text-0")
		first := one.ask(event(schema.PostToolUse))
		if err := one.agg.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		two := join(t, s, "two")
		again := two.ask(with(event(schema.PostToolUse), eventID, 2))
		if got := texts(again); len(texts(first)) != 1 || !slices.Equal(got, texts(first)) {
			t.Errorf("%q, then %q", texts(first), got)
		}
		if _, failed := two.request("ack.a", `{"fabric":"fabric-1","events":["`+eventID+`"]}`); failed != nil {
			t.Error(failed)
		}
		<-time.After(queue.LeaseFor + time.Second)
		if got := texts(two.ask(with(event(schema.PostToolUse), id(2), 1))); len(got) > 0 {
			t.Errorf("after it was acknowledged, %q came again", got)
		}
	})
}

// Two brokers share an agent's calls, which come side by side.
func TestCallsSideBySideGetNothingTwiceAndSkipNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const items, calls = 40, 16
		s := bustest.Start(t)
		one, two := join(t, s, "one"), join(t, s, "two")
		for i := range items {
			// Each of a source of its own, so that none holds back another one.
			body := fmt.Sprintf(`{"content":"text-%d","source":"s%d"}`, i, i)
			if _, failed := one.request("inject.a", body); failed != nil {
				t.Fatal(failed)
			}
		}
		seen, next, idle := map[string]int{}, 0, 0
		for len(seen) < items && idle < 20 {
			var under []*asking
			for i := range calls {
				next++
				n := []*node{one, two}[i%2]
				under = append(under, n.send(with(event(schema.PostToolUse), id(next), 1)))
			}
			before := len(seen)
			for _, a := range under {
				v, _ := a.verdict()
				for _, text := range texts(v) {
					seen[text]++
				}
			}
			if idle++; len(seen) > before {
				idle = 0
			}
		}
		for text, times := range seen {
			if times != 1 {
				t.Errorf("%s came %d times", text, times)
			}
		}
		if len(seen) != items {
			t.Errorf("%d of %d came", len(seen), items)
		}
	})
}

func TestLongTextsComeFromTheObjectStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		n.inject("text-0 " + strings.Repeat("long ", 600_000))
		v := n.ask(event(schema.PostToolUse))
		if got := texts(v); len(got) != 1 || len(v.Injections[0].Content) < 3_000_000 || v.Injections[0].Object != nil {
			t.Errorf("%q, %+v", got, v.HookErrors)
		}
	})
}

func TestExpiredItemsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		records := n.records()
		for subject, body := range map[string]string{
			"inject._":       `{"content":"x","all":true,"ttl":"5s","source":"ci"}`,
			"inject.unknown": `{"content":"x","ttl":"5s","source":"ci"}`,
		} {
			if _, failed := n.request(subject, body); failed != nil {
				t.Fatal(failed)
			}
		}
		<-after1m()
		found := 0
		for _, r := range records() {
			if r.Expired != nil && r.Expired.Source == "ci" {
				found++
			}
		}
		if counted := n.value("injections_expired_total", "source=other"); found != 2 || counted != 1 {
			t.Errorf("%d records, %v of one agent's own", found, counted)
		}
		if got := n.ask(event(schema.PostToolUse)); len(got.Injections) > 0 {
			t.Errorf("%+v", got.Injections)
		}
	})
}

func TestCallsGoOnWhileNothingCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		n := join(t, s, "one")
		n.inject("text-0")
		js, err := jetstream.New(bustest.Connect(t, s, "vandal"))
		if err != nil {
			t.Fatal(err)
		}
		cursors, err := js.Stream(t.Context(), "KV_"+queue.CursorBucket)
		if err != nil {
			t.Fatal(err)
		}
		sealed := cursors.CachedInfo().Config
		sealed.NoAck = true // the stream sends no acknowledgements any more
		if _, err := js.UpdateStream(t.Context(), sealed); err != nil {
			t.Fatal(err)
		}
		v, after := n.send(event(schema.PostToolUse)).verdict()
		if len(v.Injections) > 0 || after > 150*time.Millisecond {
			t.Errorf("after %v: %+v", after, v)
		}
		if cut := n.value("deliveries_cut_total"); cut != 1 {
			t.Errorf("%v were counted", cut)
		}
		sealed.NoAck = false
		if _, err := js.UpdateStream(t.Context(), sealed); err != nil {
			t.Fatal(err)
		}
		<-time.After(queue.LeaseFor + time.Second)
		if got := texts(n.ask(with(event(schema.PostToolUse), id(2), 1))); !slices.Equal(got, []string{"text-0"}) {
			t.Errorf("afterwards %q came", got)
		}
	})
}

func TestObjectsAreFetchedByWhoAnItemIsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		n.inject("text-0 " + strings.Repeat("x", 300_000))
		var pending schema.PendingAnswer
		answer, failed := n.request("pending.a", "")
		if failed != nil || schema.Unmarshal([]byte(answer), &pending) != nil || pending.Total != 1 || pending.Items[0].Length != 300_007 {
			t.Fatalf("%s %v", answer, failed)
		}
		digest := digestOf("text-0 " + strings.Repeat("x", 300_000))
		var part schema.FetchAnswer
		answer, failed = n.request("fetch.a", `{"digest":"`+digest+`","offset":299999}`)
		if failed != nil || schema.Unmarshal([]byte(answer), &part) != nil || string(part.Data) != "xxxxxxxx" {
			t.Errorf("%s %v", answer, failed)
		}
		if _, failed = n.request("fetch.b", `{"digest":"`+digest+`"}`); failed == nil || failed.Code != schema.CodeNotFound {
			t.Errorf("another agent: %+v", failed)
		}
	})
}

// The broker does that when its disk was full.
func TestWhatWaitsOutlivesAJetStreamThatIsStartedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		n := join(t, s, "one")
		n.inject("text-0")
		if err := s.Mend(); err != nil {
			t.Fatal(err)
		}
		<-after1m()
		n.inject("text-1")
		if err := n.queue.Ready(); err != nil {
			t.Error(err)
		}
		if got := texts(n.ask(event(schema.PostToolUse))); !slices.Equal(got, []string{"text-0", "text-1"}) {
			t.Errorf("%q came", got)
		}
	})
}

// TestARoundEndsAsItShould checks a round that two brokers watch. The agent gets one warning, and
// the hard limit begins only after its delivery.
func TestARoundEndsAsItShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		one, two := join(t, s, "one"), join(t, s, "two")
		if _, failed := one.request("round.a", `{"action":"start","initial":"1m0s","grace":"10s"}`); failed != nil {
			t.Fatal(failed)
		}
		<-time.After(10 * time.Minute) // both have noticed it long ago
		if v := two.ask(using("Bash", id(1))); v.Decision != schema.Continue {
			t.Errorf("before the warning was handed over: %+v", v)
		}
		warning := one.ask(with(event(schema.PostToolUse), id(2), 1))
		if len(warning.Injections) != 1 || warning.Injections[0].Source != schema.SourceTimeout {
			t.Fatalf("%+v", warning)
		}
		if n := one.value("soft_timeouts_total") + two.value("soft_timeouts_total"); n != 1 {
			t.Errorf("%v warnings", n)
		}
		two.request("ack.a", `{"fabric":"fabric-1","events":["`+id(2)+`"]}`)
		if v := two.ask(using("Bash", id(3))); v.Decision != schema.Continue {
			t.Errorf("in the grace: %+v", v)
		}
		<-time.After(30 * time.Second)
		one.denies(two)
		for _, n := range []*node{one, two} {
			if v := n.ask(using("mcp__s__vote", id(30))); v.Decision != schema.Continue || v.Terminate != nil {
				t.Errorf("a terminal tool: %+v", v)
			}
		}
		if st := one.status(""); st.BlockedRounds != 1 {
			t.Errorf("%+v", st)
		}
		if _, failed := two.request("round.a", `{"action":"start"}`); failed != nil {
			t.Fatal(failed)
		}
		if v := two.ask(using("Bash", id(40))); v.Decision != schema.Continue || v.Terminate != nil {
			t.Errorf("in a new round: %+v", v)
		}
	})
}

// The queue has no room for the warning: one of two brokers brings it with a verdict, and the
// other one takes the acknowledgement, which starts the grace.
func TestAWarningWithoutRoomInTheQueueIsOneOfAllBrokers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		one := join(t, s, "one")
		one.full.Store(true)
		if _, failed := one.request("round.a", `{"action":"start","initial":"1m0s","grace":"10s"}`); failed != nil {
			t.Fatal(failed)
		}
		<-time.After(10 * time.Minute)
		if v := one.ask(with(event(schema.PostToolUse), id(1), 1)); len(v.Injections) != 1 {
			t.Fatalf("%+v", v)
		}
		two := join(t, s, "two")
		two.full.Store(true)
		for i := range 20 { // whichever broker takes them
			if v := one.ask(with(event(schema.PostToolUse), id(2+i), 1)); len(v.Injections) > 0 {
				t.Errorf("the warning comes twice within a lease: %+v", v)
			}
		}
		if err := one.agg.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := two.ask(with(event(schema.PostToolUse), id(1), 2)); len(v.Injections) != 1 {
			t.Errorf("asked once more, the event brings no warning: %+v", v)
		}
		two.full.Store(false)
		<-time.After(queue.LeaseFor - time.Second)
		if v := two.ask(using("Bash", id(30))); v.Decision != schema.Continue {
			t.Errorf("nothing was acknowledged: %+v", v)
		}
		two.request("ack.a", `{"fabric":"fabric-1","events":["`+id(1)+`"]}`)
		<-time.After(11 * time.Second)
		if v := two.ask(using("Bash", id(31))); v.Decision != schema.Deny {
			t.Errorf("after the grace: %+v", v)
		}
		if n := one.value("soft_timeouts_total") + two.value("soft_timeouts_total"); n != 1 {
			t.Errorf("%v warnings were counted", n)
		}
	})
}

// denies has two brokers deny calls until the run is to end.
func (n *node) denies(other *node) {
	n.t.Helper()
	for i := range rounds.MaxDenials {
		v := []*node{n, other}[i%2].ask(using("Bash", id(10+i)))
		if v.Decision != schema.Deny || (v.Terminate != nil) != (i == rounds.MaxDenials-1) {
			n.t.Errorf("denial %d: %+v", i+1, v)
		}
	}
}

// TestALimitThatIsOverIsSaidAtTheNextCall checks that the warning comes with the agent's very next
// call, although no broker has looked at the round in between.
func TestALimitThatIsOverIsSaidAtTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		if _, failed := n.request("round.a", `{"action":"start","initial":"0s"}`); failed != nil {
			t.Fatal(failed)
		}
		if v := n.ask(event(schema.PostToolUse)); len(v.Injections) != 1 || v.Injections[0].Hook != schema.RoundTimeoutPost {
			t.Errorf("%+v", v)
		}
	})
}

func TestAnAnswerReachesTheOthersOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		if _, failed := n.request("answer.a", `{"session":"s","content":"text-42 is in /w/x.go","workspace":"/w"}`); failed != nil {
			t.Fatal(failed)
		}
		if v := n.ask(event(schema.PostToolUse)); len(v.Injections) > 0 {
			t.Errorf("its author gets it: %+v", v.Injections)
		}
		other := event(schema.PostToolUse)
		other.Subject = strings.Replace(other.Subject, ".a.", ".b.", 1)
		v := n.ask(with(other, id(2), 1))
		if got := texts(v); !slices.Equal(got, []string{"text-42"}) || !strings.Contains(v.Injections[0].Content, "agent1.1") || strings.Contains(v.Injections[0].Content, " /w/x.go") {
			t.Errorf("%q, %+v", got, v.Injections)
		}
	})
}

func digestOf(text string) string { return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(text))) }

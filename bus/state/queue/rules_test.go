package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// diary is what a queue's Watch heard.
type diary struct {
	mu   sync.Mutex
	said []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, fmt.Sprintf(format, args...))
}

// take returns what was said since it was last asked, without losses of a
// compare-and-set.
func (d *diary) take() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	said := d.said
	d.said = nil
	return said
}

func (d *diary) watch() queue.Watch {
	return queue.Watch{
		Duplicate:    func(source string) { d.note("duplicate %s", source) },
		Delivered:    func(agent string, it *schema.Item) { d.note("delivered %s %s", agent, it.Key) },
		Redelivered:  func(agent string, it *schema.Item) { d.note("redelivered %s %s", agent, it.Key) },
		LeaseExpired: func(agent, event string) { d.note("lease expired %s %s", agent, event) },
		Expired:      func(it *schema.Item) { d.note("expired %s", it.Key) },
	}
}

// says compares what was heard.
func (d *diary) says(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.take()); diff != "" {
		t.Errorf("-want +said:\n%s", diff)
	}
}

func matcher(pattern string) func(*schema.Item) {
	return func(it *schema.Item) { it.Matcher = pattern }
}

func tool(name string) func(*queue.Claim) { return func(c *queue.Claim) { c.Tool = name } }

func session(name string) func(*queue.Claim) { return func(c *queue.Claim) { c.Session = name } }

func anyTool(c *queue.Claim) { c.Any = true }

func TestAnOpenLeaseBlocksOnlyItsSource(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		takes(t, claim(t, q, "e1"), "text 1")
		enqueue(t, q, item(2))
		enqueue(t, q, item(3, source("peer")))
		takes(t, claim(t, q, "e2"), "text 3")
		takes(t, claim(t, q, "e3"))
		takes(t, claim(t, q, "e4", acks("e1")), "text 2")
	})
}

func TestAnItemForAnotherToolBlocksNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1, matcher("Write|Edit*")))
		enqueue(t, q, item(2))
		takes(t, claim(t, q, "e1"), "text 2")
		enqueue(t, q, item(3))
		takes(t, claim(t, q, "e2", acks("e1"), tool("")), "text 3") // without a tool no matcher fits
		takes(t, claim(t, q, "e3", acks("e2"), tool("EditNotebook")), "text 1")
		enqueue(t, q, item(4, matcher("*")))
		takes(t, claim(t, q, "e4", acks("e3"), tool("")))
		takes(t, claim(t, q, "e5", tool(""), anyTool), "text 4")
	})
}

func TestUnacknowledgedItemsAreDeliveredAgainInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		var d diary
		q := open(t, s, queue.Options{Watch: d.watch()})
		for n := range uint64(3) {
			enqueue(t, q, item(n+1))
		}
		takes(t, claim(t, q, "e1"), "text 1", "text 2", "text 3")
		<-time.After(queue.LeaseFor - time.Second)
		takes(t, claim(t, q, "e2"))
		<-time.After(time.Second)
		if !q.Due("a", "", "") {
			t.Error("nothing is due after the lease")
		}
		takes(t, claim(t, q, "e3"), "text 1", "text 2", "text 3")
		d.says(t, "redelivered a a-a.p.1", "redelivered a a-a.p.2", "redelivered a a-a.p.3", "lease expired a e1")
		ack(t, q, "e1") // they went out under another event
		if got := pending(q); len(got) != 3 {
			t.Errorf("after the late acknowledgement wait %v", got)
		}
		ack(t, q, "e3")
		d.says(t, "delivered a a-a.p.1", "delivered a a-a.p.2", "delivered a a-a.p.3")
	})
}

func TestALateAcknowledgementCountsUnlessTheItemsWentOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		enqueue(t, q, item(2, matcher("Other")))
		takes(t, claim(t, q, "e1", anyTool), "text 1", "text 2")
		<-time.After(queue.LeaseFor)
		takes(t, claim(t, q, "e2"), "text 1") // the other one does not fit
		ack(t, q, "e1")
		if d := cmp.Diff([]string{"a-a.p.1 leased e2"}, pending(q)); d != "" {
			t.Error(d)
		}
	})
}

func TestALeaseThatIsHeldDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		takes(t, claim(t, q, "e1"), "text 1")
		for i := range 5 {
			<-time.After(queue.LeaseFor / 2)
			if err := []*queue.Queue{q, other}[i%2].Hold(t.Context(), "a", []string{"e1"}); err != nil {
				t.Error(err)
			}
			takes(t, claim(t, other, fmt.Sprint("e1", i)))
		}
		<-time.After(queue.LeaseFor)
		takes(t, claim(t, other, "e2"), "text 1")
	})
}

func TestTheSameEventRenewsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		takes(t, claim(t, q, "e1"), "text 1")
		<-time.After(queue.LeaseFor - time.Second)
		takes(t, claim(t, q, "e1"), "text 1")
		<-time.After(queue.LeaseFor - time.Second)
		takes(t, claim(t, q, "e2"))
		<-time.After(time.Second)
		takes(t, claim(t, q, "e1"), "text 1") // it was not leased
		takes(t, claim(t, q, "e2"))
	})
}

// revisions counts the writes to the bucket of cursors.
func revisions(t *testing.T, s *server.Server) uint64 {
	t.Helper()
	js := bustest.JetStream(t, s)
	st, err := js.Stream(t.Context(), "KV_"+queue.CursorBucket)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.LastSeq
}

func TestAClaimWithAcknowledgementsIsOneWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		q.Seen("a", "s", "")
		synctest.Wait()
		for n := range uint64(20) {
			enqueue(t, q, item(n+1, source(fmt.Sprint("source", n%3))))
		}
		before := revisions(t, s)
		claim(t, q, "e1")
		enqueue(t, q, item(30))
		claim(t, q, "e2", acks("e1"))
		if n := revisions(t, s) - before; n != 2 {
			t.Errorf("two claims are %d writes", n)
		}
		ack(t, q, "e2")
		before = revisions(t, s)
		takes(t, claim(t, q, "e3", acks("e1", "e2")))
		ack(t, q, "e1", "e2", "e3", "unknown")
		if n := revisions(t, s) - before; n != 0 {
			t.Errorf("nothing new is %d writes", n)
		}
	})
}

func TestNothingDueCostsNoRoundTrip(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		js := bustest.JetStream(t, s)
		q, err := queue.Open(t.Context(), js, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close(context.Background())
		enqueue(t, q, item(1, func(it *schema.Item) { it.Scope.Agent = "other" }))
		q.Seen("a", "s", "")
		synctest.Wait()
		before := js.Conn().Stats().OutMsgs
		for i := range 100 {
			q.Seen("a", "s", "")
			if q.Due("a", "s", "") {
				t.Fatal("something is due")
			}
			takes(t, claim(t, q, fmt.Sprint("e", i)))
			q.Peers("a", "s")
			q.Pending("a", 0)
		}
		if n := js.Conn().Stats().OutMsgs - before; n != 0 {
			t.Errorf("nothing cost %d messages", n)
		}
	})
}

func TestABroadcastIsStoredOnceAndReachesThoseKnownThen(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		q.Seen("a", "s", "")
		q.Seen("b", "s", "")
		synctest.Wait()
		enqueue(t, q, item(1, forAll))
		enqueue(t, q, item(2, forSession))
		enqueue(t, q, item(3, forAll, func(it *schema.Item) { it.LateJoiners = true }))
		enqueue(t, q, item(4, forAll, func(it *schema.Item) { it.Except = "b" }))
		synctest.Wait()
		takes(t, claim(t, q, "e1"), "text 1", "text 2", "text 3", "text 4")
		takes(t, claim(t, other, "e2", as("b")), "text 1", "text 2", "text 3")
		takes(t, claim(t, other, "e3", as("late")), "text 3")
		ack(t, q, "e1")
		takes(t, claim(t, other, "e4"))
		if q.Due("a", "s", "") || other.Due("c", "other", "") != true {
			t.Error("an agent without waiting items is due, or a late one is not")
		}
		p := q.Pending("", 0)
		if len(p.Items) != 4 || p.Items[0].Delivered != 1 {
			t.Errorf("%+v", p)
		}
	})
}

func TestTheOldestItemIsOneForASingleAgent(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1, forAll))
		enqueue(t, q, item(2, forSession))
		<-time.After(3 * time.Minute)
		if old := q.Stats().Oldest; old != 0 {
			t.Errorf("what is for several makes the oldest %v old", old)
		}
		enqueue(t, q, item(3))
		<-time.After(time.Minute)
		if old := q.Stats().Oldest; old < time.Minute || old > 2*time.Minute {
			t.Errorf("the oldest is %v old", old)
		}
	})
}

func TestAnAgentMayChangeItsSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		q.Seen("a", "s", "")
		other := func(it *schema.Item) { it.Scope = schema.Scope{Session: "other"} }
		enqueue(t, q, item(1, other))
		enqueue(t, q, item(2, forSession))
		enqueue(t, q, item(3))
		takes(t, claim(t, q, "e1"), "text 2", "text 3")
		ack(t, q, "e1")
		enqueue(t, q, item(4))
		takes(t, claim(t, q, "e2"), "text 4")
		takes(t, claim(t, q, "e3", acks("e2"), session("other")), "text 1")
		takes(t, claim(t, q, "e4", acks("e3")))
		takes(t, claim(t, q, "e5", session("other")))
	})
}

func TestAnAgentsOwnItemsWaitFromBeforeItCame(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		enqueue(t, q, item(2, forAll))
		takes(t, claim(t, q, "e1"), "text 1")
	})
}

func TestAnItemExpiresButNotWhileItIsLeased(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		var d, d2 diary
		q, other := open(t, s, queue.Options{Watch: d.watch()}), open(t, s, queue.Options{Watch: d2.watch()})
		q.Seen("a", "s", "")
		synctest.Wait()
		enqueue(t, q, item(1, expiry(10*time.Second), source("one")))
		enqueue(t, q, item(2, expiry(10*time.Second), source("two"), matcher("None")))
		enqueue(t, q, item(3, expiry(10*time.Second), forAll, matcher("None")))
		takes(t, claim(t, q, "e1"), "text 1")
		<-time.After(15 * time.Second)
		takes(t, claim(t, other, "e2", anyTool))
		if said := append(d.take(), d2.take()...); !cmp.Equal(len(said), 2) {
			t.Errorf("%q", said)
		}
		if r := enqueue(t, q, item(2)); r.State != schema.Expired || !r.Duplicate || r.Sequence == 0 {
			t.Errorf("%+v", r)
		}
		if d := cmp.Diff([]string{"a-a.p.1 leased e1"}, pending(other)); d != "" {
			t.Error(d)
		}
		d.take()
		<-time.After(queue.LeaseFor)
		if said := append(d.take(), d2.take()...); !cmp.Equal(said, []string{"expired a-a.p.1"}) {
			t.Errorf("%q", said)
		}
		takes(t, claim(t, other, "e1"))
		if got := pending(q); len(got) != 0 {
			t.Errorf("%v wait", got)
		}
	})
}

func TestItemsForSeveralAgentsExpireByDefault(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1, forSession))
		object := &schema.Object{Digest: "sha256-1", Size: 5}
		enqueue(t, q, item(2, func(it *schema.Item) { it.Object = object }))
		enqueue(t, q, item(3))
		var got []time.Duration
		for _, p := range q.Pending("", 0).Items {
			got = append(got, time.Duration(p.ExpiresIn+p.Age))
		}
		if d := cmp.Diff([]time.Duration{queue.DefaultExpiry, queue.MaxExpiry, 0}, got[:min(3, len(got))], cmp.Comparer(func(a, b time.Duration) bool {
			return (a - b).Abs() < time.Minute
		})); d != "" {
			t.Error(d)
		}
		if !q.Names("a", "", "sha256-1") || q.Names("b", "", "sha256-1") || q.Names("a", "s", "sha256-2") {
			t.Error("who may fetch the object is wrong")
		}
	})
}

func TestWithdrawing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		q.Seen("a", "s", "")
		synctest.Wait()
		withdraw := func(key string) string {
			t.Helper()
			a, err := other.Withdraw(t.Context(), key)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(a.State, " ", a.Delivered)
		}
		for n := range uint64(2) {
			enqueue(t, q, item(n+1, source(fmt.Sprint("s", n))))
		}
		enqueue(t, q, item(3, forAll, source("all")))
		claim(t, q, "e1", func(c *queue.Claim) {
			c.Choose = func(_ *schema.Peers, due []*schema.Item) []*schema.Item { return due[1:] }
		})
		got := []string{withdraw("a-a.p.1"), withdraw("a-a.p.2"), withdraw("a-a.p.1")}
		ack(t, q, "e1")
		synctest.Wait()
		got = append(got, withdraw("a-a.p.2"), withdraw("all.p.3"), withdraw("all.p.3"))
		if d := cmp.Diff([]string{"withdrawn 0", "leased 0", "withdrawn 0", "delivered 0", "withdrawn 1", "withdrawn 0"}, got); d != "" {
			t.Error(d)
		}
		takes(t, claim(t, q, "e2"))
		if _, err := q.Withdraw(t.Context(), "a-a.p.9"); !errors.Is(err, queue.ErrNotFound) {
			t.Error(err)
		}
		for _, key := range []string{"", "a-a", "a-a.p", "a-a.p.x", "a-a.p.01", "x.p.1", "a-a.p.1.2", "a-=41.p.1"} {
			if _, err := q.Withdraw(t.Context(), key); !errors.Is(err, queue.ErrKey) || strings.Contains(err.Error(), "accepted") {
				t.Errorf("%q: %v", key, err)
			}
		}
	})
}

// seeing notes the numbers of what is taken as what was seen of a peer.
func seeing(c *queue.Claim) {
	c.Choose = func(p *schema.Peers, due []*schema.Item) []*schema.Item {
		if p.Seen == nil {
			p.Seen = make(map[string]string)
		}
		for _, it := range due {
			p.Seen["agent2"] += fmt.Sprint(it.Number)
		}
		return due
	}
}

func TestKnowledgeAboutPeersEndsWithItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		seen := func(p schema.Peers) string { return fmt.Sprint(p.Seen["agent2"], " ", p.VoteOnly) }
		enqueue(t, q, item(1))
		got := []string{seen(claim(t, q, "e1", seeing).Peers), seen(q.Peers("a", "s")), seen(claim(t, other, "e1", seeing).Peers)}
		if err := other.Note(t.Context(), "a", "", func(p *schema.Peers) { p.VoteOnly = true }); err != nil {
			t.Error(err)
		}
		<-time.After(queue.LeaseFor)
		enqueue(t, q, item(2))
		synctest.Wait()
		got = append(got, seen(claim(t, other, "e2", seeing).Peers), seen(other.Peers("a", "s")))
		ack(t, q, "e2")
		enqueue(t, q, item(3))
		got = append(got, seen(claim(t, q, "e3", seeing).Peers), seen(q.Peers("a", "s")))
		if d := cmp.Diff([]string{" false", "1 false", " false", " true", "12 true", "12 true", "123 true"}, got); d != "" {
			t.Error(d)
		}
	})
}

func TestFinishIsCalledUntilItWorksAndThenTheItemGoes(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		var d diary
		broken := queue.Options{Finish: func(_ context.Context, agent string, it *schema.Item) error {
			d.note("finish %s %s", agent, it.Content)
			return errors.New("not now")
		}}
		q := open(t, s, broken)
		enqueue(t, q, item(1))
		claim(t, q, "e1")
		ack(t, q, "e1")
		<-time.After(10 * time.Second)
		if n := len(d.take()); n < 2 {
			t.Errorf("called %d times", n)
		}
		if r := enqueue(t, q, item(1)); r.State != schema.Delivered {
			t.Errorf("%+v", r)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		d.take()
		open(t, s, queue.Options{Finish: func(_ context.Context, agent string, it *schema.Item) error {
			d.note("finished %s %s", agent, it.Content)
			return nil
		}})
		<-time.After(10 * time.Second)
		d.says(t, "finished a text 1")
	})
}

func TestTheAcceptingNodeListsAnItemAtOnceAndOthersSoon(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		for n := range uint64(50) {
			r := enqueue(t, q, item(n+1, source(fmt.Sprint("s", n))))
			if p := q.Pending("a", 0); p.Total != int(n+1) || q.Last() < r.Sequence {
				t.Fatalf("of %d wait %d", n+1, p.Total)
			}
		}
		synctest.Wait()
		if p := other.Pending("a", 10); p.Total != 50 || len(p.Items) != 10 {
			t.Errorf("%d wait, %d are listed", p.Total, len(p.Items))
		}
		st := other.Stats()
		if len(st.Pending) != 50 || st.Lag != 0 || q.Ready() != nil {
			t.Errorf("%+v", st)
		}
	})
}

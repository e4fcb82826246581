package queue_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// answer is the nth answer of an author of a session.
func answer(session, author string, n uint64) *schema.Item {
	label := fmt.Sprint(author, ".", n)
	return item(0, func(it *schema.Item) {
		it.Scope, it.Producer, it.Name, it.Source = schema.Scope{Session: session}, "answers", label, schema.SourcePeer
		it.LateJoiners, it.Except, it.Content = true, "the author", label
		it.Answer = &schema.PeerAnswer{Name: author, Label: label}
	})
}

// reading is a claim in a session that notes the answers it takes.
func reading(session string) func(*queue.Claim) {
	return func(c *queue.Claim) {
		c.Session = session
		c.Choose = func(p *schema.Peers, due []*schema.Item) []*schema.Item {
			for _, it := range due {
				if it.Answer != nil {
					p.Seen = maps.Clone(p.Seen)
					if p.Seen == nil {
						p.Seen = make(map[string]string)
					}
					p.Seen[it.Answer.Name] = it.Answer.Label
				}
			}
			return due
		}
	}
}

// labels is what a map says, in order.
func labels(seen map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, seen[name])
	}
	return strings.Join(all, " ")
}

func TestSeenAnswersAreRememberedPerSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, answer("s1", "agent1", 1))
		enqueue(t, q, answer("s1", "agent2", 3))
		enqueue(t, q, answer("s2", "agent1", 1))
		var before []string
		for i, session := range []string{"s1", "s2", "s1", "s2"} {
			event := fmt.Sprint("e", i)
			before = append(before, session+": "+labels(claim(t, q, event, reading(session)).Peers.Seen))
			ack(t, q, event)
			if i == 1 {
				enqueue(t, q, answer("s1", "agent1", 2))
				enqueue(t, q, answer("s2", "agent1", 2))
			}
		}
		if d := cmp.Diff([]string{"s1: ", "s2: ", "s1: agent1.1 agent2.3", "s2: agent1.1"}, before); d != "" {
			t.Error(d)
		}
		synctest.Wait()
		other := open(t, s, queue.Options{})
		if got := labels(other.Peers("a", "s1").Seen) + ", " + labels(other.Peers("a", "s2").Seen); got != "agent1.2 agent2.3, agent1.2" {
			t.Error(got)
		}
	})
}

// Counters and restarts of a session are the session's; the mode is the agent's.
func TestANoteInASessionIsOfThatSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		note := func(session string, change func(*schema.Peers)) {
			t.Helper()
			if err := q.Note(t.Context(), "a", session, change); err != nil {
				t.Fatal(err)
			}
		}
		note("s1", func(p *schema.Peers) { p.Answers, p.Checked, p.Checkpoint = 2, 2, 7 })
		note("", func(p *schema.Peers) { p.VoteOnly, p.Checkpoint = true, 5 })
		for session, want := range map[string]schema.Peers{
			"s1": {VoteOnly: true, Answers: 2, Checked: 2, Checkpoint: 7},
			"s2": {VoteOnly: true, Checkpoint: 5},
			"":   {VoteOnly: true, Checkpoint: 5},
		} {
			if d := cmp.Diff(want, q.Peers("a", session)); d != "" {
				t.Errorf("%q: %s", session, d)
			}
		}
	})
}

// An answer whose lease ended comes again as if it had not been seen, and what was seen
// in another session after it went out stays seen.
func TestTheEndOfALeaseRestoresOnlyThePeersOfItsSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, answer("s1", "agent1", 1))
		claim(t, q, "e1", reading("s1"))
		<-time.After(queue.LeaseFor)
		enqueue(t, q, answer("s2", "agent2", 1))
		enqueue(t, q, item(9))
		takes(t, claim(t, q, "e2", reading("s2")), "agent2.1", "text 9")
		ack(t, q, "e2")
		if got := claim(t, q, "e3", reading("s1")); len(got.Peers.Seen) > 0 {
			t.Errorf("before it came again: %v", got.Peers.Seen)
		}
		if got := labels(q.Peers("a", "s1").Seen) + ", " + labels(q.Peers("a", "s2").Seen); got != "agent1.1, agent2.1" {
			t.Error(got)
		}
	})
}

// counting is a claim in a session that counts an update of the second round.
func counting(session string) func(*queue.Claim) {
	return func(c *queue.Claim) {
		c.Session = session
		c.Choose = func(p *schema.Peers, due []*schema.Item) []*schema.Item {
			if p.Round != 2 {
				p.Round, p.Updates = 2, 0
			}
			p.Updates++
			return due
		}
	}
}

// What one session takes back is what it counted itself: updates of other sessions stay
// counted, and so does a mode that was set since.
func TestALeaseThatEndsTakesBackOnlyTheUpdatesItCounted(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		if err := q.Note(t.Context(), "a", "", func(p *schema.Peers) { p.Round, p.Updates = 1, 4 }); err != nil {
			t.Fatal(err)
		}
		updates := func(want int) {
			t.Helper()
			if got := q.Peers("a", ""); got.Round != 2 || got.Updates != want || !got.VoteOnly {
				t.Errorf("%d updates are counted: %+v", want, got)
			}
		}
		enqueue(t, q, answer("s1", "agent1", 1))
		enqueue(t, q, item(1, source("other"), func(it *schema.Item) { it.Scope, it.LateJoiners = schema.Scope{Session: "s1"}, true }))
		first := func(c *queue.Claim) {
			choose := c.Choose
			c.Choose = func(p *schema.Peers, due []*schema.Item) []*schema.Item { return choose(p, due)[:1] }
		}
		claim(t, q, "e1", counting("s1"), first)
		claim(t, q, "e2", counting("s1"), first)
		enqueue(t, q, item(2, source("third"), func(it *schema.Item) { it.Scope = schema.Scope{Session: "s2"} }))
		claim(t, q, "e3", counting("s2"))
		ack(t, q, "e3")
		if err := q.Note(t.Context(), "a", "", func(p *schema.Peers) { p.VoteOnly = true }); err != nil {
			t.Fatal(err)
		}
		updates(3)
		<-time.After(queue.LeaseFor)
		takes(t, claim(t, q, "e4", counting("s1"), first), "agent1.1")
		updates(2) // of e3 and e4
		takes(t, claim(t, q, "e5", counting("s1")), "text 1")
		updates(3)
		<-time.After(queue.LeaseFor)
		takes(t, claim(t, q, "e6", counting("s1")), "agent1.1", "text 1")
		updates(2)
	})
}

// A cursor remembers the sessions in which something was noted last.
func TestACursorRemembersOnlySoManySessions(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		for n := range 40 {
			if err := q.Note(t.Context(), "a", fmt.Sprint("s", n), func(p *schema.Peers) { p.Answers = 1 }); err != nil {
				t.Fatal(err)
			}
		}
		var known []string
		for n := range 40 {
			if session := fmt.Sprint("s", n); q.Peers("a", session).Answers > 0 {
				known = append(known, session)
			}
		}
		if len(known) != 16 || known[0] != "s24" {
			t.Errorf("%v are known", known)
		}
	})
}

// Releases before noted what an agent saw without its session. What it saw in each
// session is read from the session's items; its mode and its restart stay.
func TestCursorsOfReleasesWithoutSessionsAreRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		first := enqueue(t, q, answer("s1", "agent1", 1))
		leased := enqueue(t, q, answer("s1", "agent3", 1))
		enqueue(t, q, answer("s2", "agent1", 1))
		synctest.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		kv, err := bustest.JetStream(t, s).KeyValue(t.Context(), queue.CursorBucket)
		if err != nil {
			t.Fatal(err)
		}
		old := fmt.Sprintf(`{"since":1,"at":%d,"done_above":[%d],"leases":[{"event":"e0","seqs":[%d],"by":"x","peers":{"seen":{"agent1":"agent1.1"}}}],
			"peers":{"seen":{"agent1":"agent1.1","agent3":"agent3.1"},"round":4,"updates":2,"vote_only":true,"checkpoint":1,"answers":3,"checked":3}}`,
			leased.Sequence, first.Sequence, leased.Sequence)
		if _, err := kv.Put(t.Context(), "a", []byte(old)); err != nil {
			t.Fatal(err)
		}
		q = open(t, s, queue.Options{})
		s1, s2 := claim(t, q, "e1", reading("s1")), claim(t, q, "e2", reading("s2"))
		takes(t, s1, "agent3.1")
		want := schema.Peers{Round: 4, Updates: 2, VoteOnly: true, Checkpoint: 1, Seen: map[string]string{"agent1": "agent1.1"}}
		if d := cmp.Diff(want, s1.Peers); d != "" {
			t.Error("s1:", d)
		}
		want.Seen = nil
		if d := cmp.Diff(want, s2.Peers); d != "" {
			t.Error("s2:", d)
		}
	})
}

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestANumberBelowTheMarkIsTooOldALateOneAboveIsNot(t *testing.T) {
	bustest.PlainOnly(t, "what becomes of marks: hours of one writer")
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{Dedup: time.Hour})
		deliver := func(n uint64) schema.Receipt {
			r := enqueue(t, q, item(n))
			claim(t, q, fmt.Sprint("e", n))
			ack(t, q, fmt.Sprint("e", n))
			return r
		}
		deliver(5)
		<-time.After(50 * time.Minute)
		if r := enqueue(t, q, item(5)); !r.Duplicate || r.State != schema.Delivered {
			t.Errorf("below the mark, but remembered: %+v", r)
		}
		nine := deliver(9)
		<-time.After(20 * time.Minute)
		reopened := open(t, s, queue.Options{Dedup: time.Hour})
		for _, each := range []*queue.Queue{q, reopened} {
			for _, n := range []uint64{4, 5} {
				if _, err := each.Enqueue(t.Context(), item(n)); !errors.Is(err, queue.ErrTooOld) {
					t.Errorf("%d: %v", n, err)
				}
			}
		}
		if r := enqueue(t, q, item(9)); !r.Duplicate || r.Sequence != nine.Sequence || r.State != schema.Delivered {
			t.Errorf("what is still remembered: %+v", r)
		}
		for _, it := range []*schema.Item{item(8), item(4, forAll), item(4, forSession)} {
			if r := enqueue(t, q, it); r.Duplicate {
				t.Errorf("a late one, or one for others: %+v", r)
			}
		}
		<-time.After(time.Hour)
		if _, err := q.Enqueue(t.Context(), item(9)); !errors.Is(err, queue.ErrTooOld) {
			t.Error(err)
		}
		if r := enqueue(t, q, item(8)); !r.Duplicate || r.State != schema.Queued {
			t.Errorf("one below the mark that still waits: %+v", r)
		}
	})
}

func TestItemsFromBeforeALongStopAreNotAcceptedAgain(t *testing.T) {
	for name, stop := range map[string]struct {
		after time.Duration
		dies  bool
	}{
		"stopped at once":       {after: 0},
		"killed a little later": {after: 15 * time.Second, dies: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				o := queue.Options{Dedup: time.Hour}
				if stop.dies {
					o.Step = func(queue.Step) error { return nil } // it says nothing when it is closed
				}
				q := open(t, s, o)
				enqueue(t, q, item(5))
				claim(t, q, "e")
				ack(t, q, "e")
				synctest.Wait()
				<-time.After(stop.after)
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-time.After(3 * time.Hour)
				q = open(t, s, queue.Options{Dedup: time.Hour})
				if _, err := q.Enqueue(t.Context(), item(5)); !errors.Is(err, queue.ErrTooOld) {
					t.Error(err)
				}
				if r := enqueue(t, q, item(6)); r.Duplicate {
					t.Errorf("a new one: %+v", r)
				}
			})
		})
	}
}

func TestMarksOfManyEndsStaySmallAndHoldInTime(t *testing.T) {
	bustest.PlainOnly(t, "how large marks become: hours of one writer")
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{Dedup: time.Hour})
		for n := range uint64(200) {
			e := fmt.Sprint("e", n)
			enqueue(t, q, item(n+1))
			claim(t, q, e)
			ack(t, q, e)
			<-time.After(30 * time.Second)
		}
		kv, err := bustest.JetStream(t, s).KeyValue(t.Context(), queue.CursorBucket)
		if err != nil {
			t.Fatal(err)
		}
		e, err := kv.Get(t.Context(), "a.p")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(e.Value()), "from"); n < 40 || n > 60 {
			t.Errorf("%d parts: %s", n, e.Value())
		}
		for _, n := range []uint64{1, 70, 75} { // sent more than an hour ago
			if _, err := q.Enqueue(t.Context(), item(n)); !errors.Is(err, queue.ErrTooOld) {
				t.Errorf("%d: %v", n, err)
			}
		}
		for _, n := range []uint64{90, 200} {
			if r := enqueue(t, q, item(n)); !r.Duplicate || r.State != schema.Delivered {
				t.Errorf("%d: %+v", n, r)
			}
		}
	})
}

func TestItemsWithAndWithoutAName(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		named := func(it *schema.Item) { it.Number, it.Name = 0, "9 ü" }
		none := func(it *schema.Item) { it.Number = 0 }
		r := enqueue(t, q, item(1, named))
		if r.Key != "a-a.p.k-9=20=C3=BC" {
			t.Error(r.Key)
		}
		if r := enqueue(t, q, item(2, named)); !r.Duplicate {
			t.Error("the same name is another item")
		}
		a, b := enqueue(t, q, item(3, none)), enqueue(t, q, item(3, none))
		if a.Key == b.Key || b.Duplicate {
			t.Errorf("%+v, %+v", a, b)
		}
		takes(t, claim(t, q, "e1"), "text 1", "text 3", "text 3")
		ack(t, q, "e1")
		<-time.After(2 * time.Minute)
		st, err := bustest.JetStream(t, s).Stream(t.Context(), "KV_"+queue.ItemBucket)
		if err != nil {
			t.Fatal(err)
		}
		if n := st.CachedInfo().State.Msgs; n != 1 {
			t.Errorf("%d ends are remembered; want that of the item with a name", n)
		}
	})
}

func TestBounds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{MaxPerScope: 2, MaxItems: 3})
		enqueue(t, q, item(1))
		enqueue(t, q, item(2))
		full := func(it *schema.Item) {
			t.Helper()
			if _, err := q.Enqueue(t.Context(), it); !errors.Is(err, queue.ErrFull) {
				t.Errorf("%v", err)
			}
		}
		full(item(3))
		if r := enqueue(t, q, item(2)); !r.Duplicate {
			t.Error("in a full queue a repeat is no duplicate")
		}
		enqueue(t, q, item(3, forAll))
		full(item(4, forSession))
		claim(t, q, "e1")
		ack(t, q, "e1")
		synctest.Wait()
		enqueue(t, q, item(3))
	})
}

func TestInvalidItemsAreRejected(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		for want, change := range map[string]func(*schema.Item){
			"name one of them":     func(it *schema.Item) { it.Scope.Session = "s" },
			"use one of them":      func(it *schema.Item) { it.Name = "x" },
			"the producer: ":       func(it *schema.Item) { it.Producer = "" },
			"write tool_result or": func(it *schema.Item) { it.Strategy = "loud" },
			"the source is":        source("two words"),
			"letters, digits":      source(strings.Repeat("x", 65)),
			"the matcher: ":        matcher("|"),
			"it has no content":    func(it *schema.Item) { it.Content = "" },
			"more than one structured": func(it *schema.Item) {
				it.Subagent, it.Background = new(schema.SubagentResult), new(schema.BackgroundResult)
			},
			"at most 256 KiB": func(it *schema.Item) { it.Content = strings.Repeat("x", queue.MaxContent+1) },
			"at most 1024 KiB": func(it *schema.Item) {
				it.Subagent = &schema.SubagentResult{Answer: strings.Repeat("x", queue.MaxValue)}
			},
			"write how long":            expiry(-1),
			"may wait for 168h0m0s":     func(it *schema.Item) { forAll(it); it.Expiry = schema.Duration(queue.MaxExpiry + 1) },
			"in the object store, may ": func(it *schema.Item) { it.Object, it.Expiry = new(schema.Object), schema.Duration(queue.MaxExpiry+1) },
		} {
			_, err := q.Enqueue(t.Context(), item(1, change))
			if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", want, err)
			}
		}
		if p := q.Pending("", 0); p.Total != 0 {
			t.Errorf("%d items were accepted", p.Total)
		}
		for _, c := range []*queue.Claim{{Routing: schema.Routing{Agent: "a"}}, {Routing: schema.Routing{ID: "e"}}} {
			if _, err := q.Claim(t.Context(), c); !errors.Is(err, queue.ErrInvalid) {
				t.Error(err)
			}
		}
	})
}

func TestLongTextsAreReadFromTheLeader(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		long := strings.Repeat("long ", 2000)
		enqueue(t, q, item(1, func(it *schema.Item) { it.Content = long }))
		answer := &schema.SubagentResult{ID: "x", Answer: long}
		enqueue(t, q, item(2, func(it *schema.Item) { it.Content, it.Subagent = "", answer }))
		synctest.Wait()
		got := claim(t, other, "e1", func(c *queue.Claim) { c.MaxBytes = 100 })
		takes(t, got, long)
		if got.More != 1 {
			t.Errorf("%d more", got.More)
		}
		got = claim(t, q, "e2", acks("e1"))
		if len(got.Items) != 1 || cmp.Diff(answer, got.Items[0].Subagent) != "" {
			t.Errorf("%+v", got)
		}
		if n := q.Pending("a", 0).Items; len(n) != 1 || n[0].Length != int64(len(long)) {
			t.Errorf("%+v", n)
		}
	})
}

func TestNoMoreLongTextsGoOutAtOnceThanAreFetched(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		const third = schema.MaxText / 3
		for n := range uint64(7) {
			enqueue(t, q, item(n+1, func(it *schema.Item) {
				it.Content, it.Object = "", &schema.Object{Digest: "sha256-" + strings.Repeat("a", 64), Size: third}
			}))
		}
		var sizes []int
		for e := ""; len(sizes) < 3; e += "e" {
			got := claim(t, q, "e"+e, acks(e))
			sizes = append(sizes, len(got.Items))
		}
		if d := cmp.Diff([]int{3, 3, 1}, sizes); d != "" {
			t.Error(d)
		}
	})
}

func TestAClaimIsCutInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		for n := range uint64(5) {
			enqueue(t, q, item(n+1))
		}
		calls := [][]uint64{}
		got := claim(t, q, "e1", func(c *queue.Claim) {
			c.MaxBytes = len("text 1") * 2
			c.Choose = func(p *schema.Peers, due []*schema.Item) []*schema.Item {
				var numbers []uint64
				for _, it := range due {
					numbers = append(numbers, it.Number)
				}
				p.Updates += len(due)
				calls = append(calls, numbers)
				return due[1:]
			}
		})
		takes(t, got, "text 3")
		if d := cmp.Diff([][]uint64{{1, 2, 3, 4, 5}, {2, 3}}, calls); d != "" || got.More != 3 || q.Peers("a", "s").Updates != 2 {
			t.Errorf("%d more, %d noted\n%s", got.More, q.Peers("a", "s").Updates, d)
		}
	})
}

// mute is a JetStream of which the first write of an item hears nothing, for as long as
// its leader has not been missed.
type mute struct {
	jetstream.JetStream
	store  bool // it is stored all the same
	writes int
}

func (m *mute) PublishMsg(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if !strings.Contains(msg.Subject, queue.ItemBucket) {
		return m.JetStream.PublishMsg(ctx, msg, opts...)
	}
	if m.writes++; m.writes > 1 {
		return m.JetStream.PublishMsg(ctx, msg, opts...)
	}
	if m.store {
		_, _ = m.JetStream.PublishMsg(ctx, msg, opts...)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The client gives up after 4 s. A request that a dead leader received must be sent again before that.
func TestARequestToADeadLeaderIsSentAgain(t *testing.T) {
	for _, store := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored all the same: %t", store), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				js := &mute{JetStream: bustest.JetStream(t, s), store: store}
				q, err := queue.Open(t.Context(), js, queue.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer q.Close(context.Background())
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				r, err := q.Enqueue(ctx, item(1))
				if err != nil || r.Duplicate || js.writes != 2 {
					t.Errorf("%+v after %d writes: %v", r, js.writes, err)
				}
				q.Seen("a", "s", "")
				synctest.Wait()
				takes(t, claim(t, q, "e1"), "text 1")
			})
		})
	}
}

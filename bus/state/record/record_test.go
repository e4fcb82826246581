package record_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// counts are what a writer said of its records.
type counts struct {
	mu      sync.Mutex
	written int
	dropped map[record.Cause]int
}

func (c *counts) all() (written, dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.dropped {
		dropped += n
	}
	return c.written, dropped
}

func (c *counts) of(cause record.Cause) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped[cause]
}

// write starts a writer that ends with the test, if not before.
func write(t *testing.T, s *server.Server, o record.Options) (*record.Writer, *counts) {
	t.Helper()
	if o.Broker == "" {
		o.Broker = "b1"
	}
	c := &counts{dropped: make(map[record.Cause]int)}
	o.Written = func(n int) { c.mu.Lock(); defer c.mu.Unlock(); c.written += n }
	o.Dropped = func(cause record.Cause, n int) { c.mu.Lock(); defer c.mu.Unlock(); c.dropped[cause] += n }
	w, err := record.Start(bustest.JetStream(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	synctest.Wait() // the stream is there
	return w, c
}

// verdict is the n-th record of a test, of an agent that has its turn with nine others.
func verdict(n int) record.Entry {
	rec := &schema.Record{
		Time: time.Now(), EventID: fmt.Sprint(n), Event: schema.PreToolUse, Agent: fmt.Sprint("agent-", n%10), Tool: "Bash", Decision: schema.Continue,
		ExecutedHooks: []schema.ExecutedHook{{Hook: "log", Outcome: schema.OK}},
	}
	if n%10 == 3 {
		rec.Decision, rec.Reason = schema.Deny, "no"
	}
	return record.Entry{Record: rec, Body: fmt.Appendf(nil, `{"runtime":"claude","tool_kind":"shell","tool_input":{"command":"ls %d"}}`, n)}
}

// history is all that is kept.
func history(t *testing.T, s *server.Server, span record.Span) (batches []*record.Batch, ids []string) {
	t.Helper()
	err := record.Read(t.Context(), bustest.JetStream(t, s), span, func(b *record.Batch) error {
		batches = append(batches, b)
		for _, line := range b.Lines {
			ids = append(ids, read(t, line).EventID)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return batches, ids
}

func read(t *testing.T, line []byte) (rec schema.Record) {
	t.Helper()
	if err := schema.Unmarshal(line, &rec); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return rec
}

// numbered are the ids of that many records.
func numbered(from, to int) (ids []string) {
	for n := from; n < to; n++ {
		ids = append(ids, fmt.Sprint(n))
	}
	return ids
}

func TestManyRecordsAreFewMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, c := write(t, s, record.Options{})
		const n = 2000
		for i := range n {
			w.Put(verdict(i))
		}
		<-time.After(time.Second)
		batches, ids := history(t, s, record.Span{})
		if !slices.Equal(ids, numbered(0, n)) {
			t.Errorf("%d records: %v…", len(ids), ids[:min(len(ids), 20)])
		}
		if len(batches) < 2 || len(batches) > 5 {
			t.Errorf("%d messages", len(batches))
		}
		if written, dropped := c.all(); written != n || dropped != 0 || w.Waiting() != 0 {
			t.Errorf("%d written, %d dropped, %d wait", written, dropped, w.Waiting())
		}
		got := read(t, batches[0].Lines[0])
		if got.Broker != "b1" || got.Runtime != "claude" || got.ToolKind != "shell" || len(got.InputHash) != len("sha256-")+64 {
			t.Errorf("%+v", got)
		}
	})
}

func TestARecordWaitsAFifthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, c := write(t, s, record.Options{})
		for round := 1; round <= 3; round++ {
			w.Put(verdict(round))
			<-time.After(199 * time.Millisecond)
			synctest.Wait()
			if written, _ := c.all(); written != round-1 {
				t.Errorf("%d were written too soon", written)
			}
			<-time.After(time.Millisecond)
			synctest.Wait()
			if written, _ := c.all(); written != round {
				t.Errorf("%d were written in time; want %d", written, round)
			}
		}
	})
}

func TestAStopWritesWaitingRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, c := write(t, s, record.Options{})
		for i := range 300 {
			w.Put(verdict(i))
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if written, dropped := c.all(); written != 300 || dropped != 0 {
			t.Errorf("%d written, %d dropped", written, dropped)
		}
		w.Put(verdict(300)) // too late
		if _, dropped := c.all(); dropped != 1 {
			t.Errorf("%d dropped after the end", dropped)
		}
		if _, ids := history(t, s, record.Span{}); !slices.Equal(ids, numbered(0, 300)) {
			t.Errorf("%d records", len(ids))
		}
	})
}

// squatter is a stream that has the subjects of records, so that the record cannot
// be made.
func squatter(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	js := bustest.JetStream(t, s)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "other", Subjects: []string{"hook.v1.>"}, NoAck: true, MaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	return js
}

// What comes while the stream takes nothing waits within bounds; the rest is dropped
// and counted, and what waited is written when the stream is back.
func TestABlockedWriterDelaysNoCallAndCountsDroppedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := squatter(t, s)
		w, c := write(t, s, record.Options{})
		const n = 60_000
		for i := range n {
			w.Put(verdict(i))
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		<-time.After(10 * time.Second)
		written, dropped := c.all()
		if written != 0 || dropped != c.of(record.Full) || dropped == 0 || dropped > n-8192 {
			t.Errorf("blocked: %d written, %d dropped, %d of them because it was full", written, dropped, c.of(record.Full))
		}
		if waits := w.Waiting(); waits == 0 || waits > 2*8192+35*1024 {
			t.Errorf("%d wait", waits)
		}
		if err := js.DeleteStream(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		written, dropped = c.all()
		if written+dropped != n || written < 8192 || w.Waiting() != 0 {
			t.Errorf("afterwards: %d written, %d dropped, of %d", written, dropped, n)
		}
		w.Put(verdict(n))
		<-time.After(time.Second)
		batches, ids := history(t, s, record.Span{})
		told := uint64(0)
		for _, b := range batches {
			told += b.Dropped
		}
		if len(ids) != written+1 || told != uint64(dropped) || ids[0] != "0" || ids[len(ids)-1] != fmt.Sprint(n) {
			t.Errorf("%d records are kept, and %d are told to be dropped", len(ids), told)
		}
	})
}

func TestAStopDoesNotWaitForAStreamThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		squatter(t, s)
		w, c := write(t, s, record.Options{})
		for i := range 300 {
			w.Put(verdict(i))
		}
		begun := time.Now()
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := c.of(record.Stopped); n != 300 {
			t.Errorf("%d are counted", n)
		}
	})
}

// A stop does not wait for records that take long to make either.
func TestAStopDoesNotWaitForRecordsThatTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(string) string { <-time.After(time.Second); return "host" }
		w, c := write(t, bustest.Start(t), record.Options{Host: slow})
		for i := range 300 {
			w.Put(verdict(i))
		}
		begun := time.Now()
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 7*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := c.of(record.Stopped); n < 290 {
			t.Errorf("%d are counted", n)
		}
	})
}

// A reader that follows two writers reads each record once and each writer's in its
// order, whenever it begins.
func TestFollowingHasNoGapsAndNoDuplicatesAfterTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		writers := make([]*record.Writer, 2)
		for i := range writers {
			writers[i], _ = write(t, s, record.Options{Broker: fmt.Sprint("b", i)})
		}
		const n = 5000
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		got, caughtUp, all := map[string][]string{}, 0, 0
		done := make(chan error, 1)
		for i := range n {
			writers[i%2].Put(verdict(i))
			if i%100 == 0 {
				<-time.After(50 * time.Millisecond)
			}
			if i != n/2 {
				continue
			}
			js := bustest.JetStream(t, s)
			go func() {
				done <- record.Read(ctx, js, record.Span{Follow: true, CaughtUp: func() error { caughtUp++; return nil }}, func(b *record.Batch) error {
					for _, line := range b.Lines {
						var rec schema.Record
						if err := schema.Unmarshal(line, &rec); err != nil {
							return err
						}
						got[b.Broker] = append(got[b.Broker], rec.EventID)
						all++
					}
					if all >= n {
						enough()
					}
					return nil
				})
			}()
		}
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("not all came")
		}
		for i := range 2 {
			var want []string
			for k := i; k < n; k += 2 {
				want = append(want, fmt.Sprint(k))
			}
			if !slices.Equal(got[fmt.Sprint("b", i)], want) {
				t.Errorf("of writer %d came %d records", i, len(got[fmt.Sprint("b", i)]))
			}
		}
		if caughtUp != 1 {
			t.Errorf("it had caught up %d times", caughtUp)
		}
	})
}

func TestReadingBeginsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, _ := write(t, s, record.Options{})
		w.Put(verdict(0))
		<-time.After(time.Minute)
		since := time.Now()
		w.Put(verdict(1))
		<-time.After(time.Minute)
		if _, ids := history(t, s, record.Span{Since: since}); !slices.Equal(ids, []string{"1"}) {
			t.Errorf("%v", ids)
		}
		if _, ids := history(t, s, record.Span{Since: time.Now()}); len(ids) != 0 {
			t.Errorf("%v", ids)
		}
	})
}

func TestWithoutAStreamThereIsNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := bustest.JetStream(t, s)
		if _, err := record.Look(t.Context(), js); !errors.Is(err, record.ErrNone) {
			t.Error(err)
		}
		if err := record.Read(t.Context(), js, record.Span{}, nil); !errors.Is(err, record.ErrNone) {
			t.Error(err)
		}
	})
}

// leaderless is a JetStream whose servers have no leader at first.
type leaderless struct {
	jetstream.JetStream
	asked int
}

func (l *leaderless) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if l.asked++; l.asked < 3 {
		return nil, &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}
	}
	return l.JetStream.Stream(ctx, name)
}

func TestServersWithoutALeaderAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := &leaderless{JetStream: bustest.JetStream(t, s)}
		if _, err := record.Look(t.Context(), js); !errors.Is(err, record.ErrNone) || js.asked != 3 {
			t.Errorf("asked %d times: %v", js.asked, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := record.Look(ctx, &leaderless{asked: math.MinInt}); err == nil || !strings.Contains(err.Error(), "temporarily unavailable") {
			t.Error(err)
		}
	})
}

// A message that is published again long after is told apart by its number.
func TestADuplicateMessageIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, _ := write(t, s, record.Options{})
		w.Put(verdict(0))
		<-time.After(time.Second)
		js := bustest.JetStream(t, s)
		stream, err := js.Stream(t.Context(), record.Name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetMsg(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			<-time.After(10 * time.Minute)
			if ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}); err != nil || ack.Duplicate {
				t.Fatal(ack, err)
			}
		}
		w.Put(verdict(1))
		<-time.After(time.Second)
		if _, ids := history(t, s, record.Span{}); !slices.Equal(ids, []string{"0", "1"}) {
			t.Errorf("%v", ids)
		}
	})
}

func TestARecordThatIsTooLargeLosesItsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, c := write(t, s, record.Options{})
		e := verdict(0)
		e.Record.HookErrors = slices.Repeat([]string{strings.Repeat("x", 4000)}, 100)
		w.Put(e)
		giant := verdict(1)
		giant.Record.Session = strings.Repeat("s", 300<<10)
		w.Put(giant)
		<-time.After(time.Second)
		batches, ids := history(t, s, record.Span{})
		if !slices.Equal(ids, []string{"0"}) || c.of(record.Large) != 1 {
			t.Fatalf("%v; %d were too large", ids, c.of(record.Large))
		}
		if rec := read(t, batches[0].Lines[0]); len(rec.HookErrors) != 16 || !slices.Equal(rec.Cut, []string{"hook_errors"}) {
			t.Errorf("%d errors, cut %v", len(rec.HookErrors), rec.Cut)
		}
		if len(e.Record.HookErrors) != 100 {
			t.Error("the feed's record was changed")
		}
	})
}

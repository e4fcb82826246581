package aggregator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/schema"
)

// notebook is a recorder that keeps everything.
type notebook struct {
	mu  sync.Mutex
	all []record.Entry
}

func (n *notebook) Put(e record.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

func (n *notebook) entries() []record.Entry {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all
}

// TestEveryVerdictIsHandedToTheRecorder checks that the recorder gets for each verdict what the
// feed gets, and the event unchanged.
func TestEveryVerdictIsHandedToTheRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := new(notebook)
		silent := func(string) bool { return false } // no client subscribes to the feed
		lib := library{"rewrites": says(schema.Result{UpdatedInput: []byte(`{"command":"true"}`)}), "breaks": func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{}, fmt.Errorf("broken")
		}}
		f := startWith(t, aggregator.Options{Recorder: notes, Interest: silent}, lib,
			hook("rewrites", matching("Bash")), hook("breaks", matching("Edit"), failClosed), hook("open", matching("Edit"), func(h *schema.Hook) { h.Handler = "breaks" }))
		inTurn := func(m *nats.Msg) {
			f.ask(m)
			synctest.Wait() // an answer goes out before its record is put
		}
		first := event(schema.PreToolUse)
		inTurn(first)
		again := event(schema.PreToolUse)
		again.Subject += ".again"
		again.Header.Set(schema.HeaderAttempt, "2")
		inTurn(again)
		inTurn(event(schema.QueryEnd)) // no hook matches
		broken := event(schema.PreToolUse)
		broken.Data = []byte(`{"tool_name":"Other"}`)
		inTurn(broken)
		edit := event(schema.PreToolUse)
		edit.Header.Set(schema.HeaderTool, "Edit")
		edit.Data = []byte(`{"tool_name":"Edit"}`)
		inTurn(edit)
		var got []schema.Record
		all := notes.entries()
		for _, e := range all {
			got = append(got, *e.Record)
		}
		ignore := cmpopts.IgnoreFields(schema.Record{}, "Time", "Took", "Reason", "ExecutedHooks", "HookErrors")
		common := schema.Record{EventID: eventID, Event: schema.PreToolUse, Agent: "a", Session: "s", Tool: "Bash", ConfigVersion: 1}
		one, two, none, malformed, failed := common, common, common, common, common
		one.Decision, one.Rewritten = schema.Continue, true
		two.Decision, two.Attempt, two.Failed = schema.Continue, 2, schema.FailedOpen // its hook is not one that may run twice
		none.Event, none.Tool, none.Decision = schema.QueryEnd, "", schema.Continue
		malformed.Decision, malformed.Malformed = schema.Deny, true
		failed.Tool, failed.Decision, failed.Failed = "Edit", schema.Deny, schema.FailedClosed
		if diff := cmp.Diff([]schema.Record{one, two, none, malformed, failed}, got, ignore); diff != "" {
			t.Fatal(diff)
		}
		if string(all[0].Body) != string(first.Data) || string(all[0].Input) != `{"command":"true"}` {
			t.Errorf("%s, %s", all[0].Body, all[0].Input)
		}
	})
}

func TestAVerdictOfAnEventThatWasNotJudgedIsRecordedAsShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := new(notebook)
		f := narrowWith(t, aggregator.Options{Recorder: notes}, failClosed)
		var all []*asking
		for range 50 * slots {
			all = append(all, f.send(left(2*time.Second)))
		}
		h := hear(t, all, 2*time.Second)
		shed := 0
		for _, e := range notes.entries() {
			if e.Record.Shed {
				shed++
			}
			if e.Record.Shed != (e.Record.Failed == schema.FailedClosed) {
				t.Errorf("%+v", e.Record)
			}
		}
		if shed == 0 || shed != h.refused {
			t.Errorf("%d records are about a verdict that was shed, and %+v", shed, h)
		}
	})
}

// TestTwoBrokersRecordEachVerdictOnce checks two brokers that share the events of many agents. A
// reader of the record finds each verdict once, also while they write.
func TestTwoBrokersRecordEachVerdictOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := library{"no": says(schema.Denied("no"))}
		s := bustest.Start(t)
		var closing []func()
		brokers := make([]*fabric, 2)
		for i := range brokers {
			w, err := record.Start(bustest.JetStream(t, s), record.Options{Broker: fmt.Sprint("b", i)})
			if err != nil {
				t.Fatal(err)
			}
			brokers[i] = startOn(t, s, aggregator.Options{Recorder: w}, lib, hook("no", matching("Bash")))
			closing = append(closing, func() {
				if err := brokers[i].agg.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				if err := w.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		const n = 1000
		var all []*asking
		for i := range n {
			m := event(schema.PreToolUse)
			m.Header.Set(schema.HeaderID, fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", i))
			m.Subject = fmt.Sprintf("hook.v1.event.agent-%d.PreToolUse", i%50)
			all = append(all, brokers[0].send(m))
		}
		for _, a := range all {
			if v, _ := a.verdict(); v.Decision != schema.Deny {
				t.Fatalf("%+v", v)
			}
		}
		for _, stop := range closing {
			stop()
		}
		seen, by := map[string]int{}, map[string]int{}
		err := record.Read(t.Context(), bustest.JetStream(t, s), record.Span{}, func(b *record.Batch) error {
			for _, line := range b.Lines {
				var rec schema.Record
				if err := schema.Unmarshal(line, &rec); err != nil {
					return err
				}
				seen[rec.EventID]++
				by[rec.Broker]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s is there %d times", id, times)
			}
		}
		if len(seen) != n || len(by) != 2 {
			t.Errorf("%d verdicts of %d are there, by %v", len(seen), n, by)
		}
	})
}

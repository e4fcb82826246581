package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func mail(sequence uint64, source string, more ...func(*model.Item)) model.Item {
	i := model.Item{Injection: schema.Injection{Content: "c", Source: source, Sequence: sequence}, Agent: "a"}
	for _, m := range more {
		m(&i)
	}
	return i
}

func sequences(items []model.Item) []uint64 {
	var out []uint64
	for _, i := range items {
		out = append(out, i.Sequence)
	}
	return out
}

func after(id string) schema.Event {
	return schema.Event{HookType: schema.PostToolUse, EventID: id, AgentID: "a", SessionID: "s", ToolName: "Bash"}
}

func TestWhatAnEventClaims(t *testing.T) {
	held := func(i *model.Item) { i.Held = true }
	forAll := func(i *model.Item) { i.Agent = "" }
	forSession := func(s string) func(*model.Item) { return func(i *model.Item) { i.Agent, i.Session = "", s } }
	matcher := func(m string) func(*model.Item) { return func(i *model.Item) { i.Matcher = m } }
	expires := func(d time.Duration) func(*model.Item) { return func(i *model.Item) { i.Expires = noon().Add(d) } }
	late := func(i *model.Item) { i.LateJoiners = true }
	other := func(i *model.Item) { i.Agent = "b" }
	lease := func(ends time.Duration, s ...uint64) []model.Lease {
		return []model.Lease{{Event: "e0", Sequences: s, Ends: noon().Add(ends)}}
	}
	for _, c := range []struct {
		sentence string
		cursor   model.Cursor
		decision schema.Decision
		items    []model.Item
		want     []uint64
	}{
		{"everything that fits, in stream order", model.Cursor{}, "", []model.Item{mail(3, "x"), mail(1, "y"), mail(2, "x")}, []uint64{1, 2, 3}},
		{"feedback after a tool holds nothing back", model.Cursor{}, schema.Deny, []model.Item{mail(1, "x")}, []uint64{1}},
		{"a fail claims nothing", model.Cursor{}, schema.Fail, []model.Item{mail(1, "x")}, nil},
		{"a stop claims nothing", model.Cursor{}, schema.Stop, []model.Item{mail(1, "x")}, nil},
		{"what does not fit holds back no later one", model.Cursor{}, "", []model.Item{mail(1, "x", held), mail(2, "x", matcher("Write")), mail(3, "x", matcher("Ba*"))}, []uint64{3}},
		{"what was handed over does not come again", model.Cursor{Done: []uint64{1}}, "", []model.Item{mail(1, "x"), mail(2, "x")}, []uint64{2}},
		{"what has expired does not come", model.Cursor{}, "", []model.Item{mail(1, "x", expires(0)), mail(2, "x", expires(1))}, []uint64{2}},
		{"an open lease blocks later items of its source", model.Cursor{Leases: lease(time.Second, 2)}, "", []model.Item{mail(1, "x"), mail(2, "x"), mail(3, "x"), mail(4, "y")}, []uint64{1, 4}},
		{"a lease that has ended blocks nothing", model.Cursor{Leases: lease(0, 2)}, "", []model.Item{mail(2, "x"), mail(3, "x")}, []uint64{2, 3}},
		{"other agents' items are not ours", model.Cursor{}, "", []model.Item{mail(1, "x", other), mail(2, "x")}, []uint64{2}},
		{"our session's are, others' are not", model.Cursor{}, "", []model.Item{mail(1, "x", forSession("s")), mail(2, "x", forSession("t"))}, []uint64{1}},
		{"late joiners skip old broadcasts, never their own items", model.Cursor{Since: 3}, "", []model.Item{mail(1, "x", forAll), mail(2, "x"), mail(3, "x", forAll, late), mail(4, "x", forAll)}, []uint64{2, 3, 4}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			c.cursor.Agent = "a"
			got, _ := c.cursor.Claim(after("e1"), c.decision, c.items, noon())
			if d := cmp.Diff(c.want, sequences(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestADenyBeforeTheToolOrOfAPromptClaimsNothing(t *testing.T) {
	for _, event := range schema.EventTypes() {
		e := after("e1")
		e.HookType = event
		got, _ := model.Cursor{Agent: "a"}.Claim(e, schema.Deny, []model.Item{mail(1, "x")}, noon())
		blocked := event == schema.PreToolUse || event == schema.UserPromptSubmit
		if (len(got) == 0) != blocked {
			t.Errorf("%s: claimed %v", event, sequences(got))
		}
	}
}

func TestTheSameEventAskedAgainGetsTheSameItems(t *testing.T) {
	c := model.Cursor{Agent: "a"}
	_, c = c.Claim(after("e1"), "", []model.Item{mail(1, "x")}, noon())
	more := []model.Item{mail(1, "x"), mail(2, "y")}
	got, c := c.Claim(after("e1"), "", more, noon().Add(time.Second))
	if d := cmp.Diff([]uint64{1}, sequences(got)); d != "" {
		t.Errorf("again (-want +got):\n%s", d)
	}
	got, _ = c.Claim(after("e1"), "", more, noon().Add(model.Term))
	if d := cmp.Diff([]uint64{1, 2}, sequences(got)); d != "" {
		t.Errorf("after the lease has ended (-want +got):\n%s", d)
	}
}

func TestAnAckCountsUnlessTheItemsWentOutUnderAnotherEvent(t *testing.T) {
	items := []model.Item{mail(1, "x"), mail(2, "y")}
	_, c := model.Cursor{Agent: "a"}.Claim(after("e1"), "", items, noon())
	later := noon().Add(model.Term)
	items[1].Held = true
	got, c := c.Claim(after("e2"), "", items, later)
	if d := cmp.Diff([]uint64{1}, sequences(got)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	c = c.Ack("e1").Ack("never asked")
	if d := cmp.Diff([]uint64{2}, c.Done); d != "" {
		t.Errorf("late ack of e1 (-want +got):\n%s", d)
	}
	c = c.Ack("e2")
	if d := cmp.Diff([]uint64{2, 1}, c.Done); d != "" || len(c.Leases) != 0 {
		t.Errorf("leases %v, done (-want +got):\n%s", c.Leases, d)
	}
}

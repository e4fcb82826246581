package aggregator_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// with changes a question: its id, its attempt and its acknowledgements.
func with(m *nats.Msg, id string, attempt int, acks ...string) *nats.Msg {
	q, err := bus.ParseEventMsg(m)
	if err != nil {
		panic(err)
	}
	q.ID = id
	return bus.EventMsg(m.Subject, q.Routing, attempt, q.Left, acks, m.Data)
}

// id returns an event's id.
func id(n int) string { return fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012x", n) }

func human(text string) *schema.Item { return &schema.Item{Source: schema.SourceHuman, Content: text} }

// listInjections lists the injections of a verdict: hook, source and sequence of each.
func listInjections(v schema.Verdict) string {
	var all []string
	for _, in := range v.Injections {
		all = append(all, fmt.Sprintf("%s/%s/%d", in.Hook, in.Source, in.Sequence))
	}
	return strings.Join(all, " ")
}

func TestWhatWaitsIsHandedOverAtItsHooksPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		lib := library{"first": says(schema.Injected("1", schema.ToolResult)), "last": says(schema.Injected("2", schema.ToolResult))}
		f := remembering(t, m, lib, hook("first", at(schema.PostToolUse)), stage(schema.HumanInput, schema.PostToolUse),
			stage(schema.MidStreamInjection, schema.PostToolUse), hook("last", at(schema.PostToolUse)))
		m.put(&schema.Item{Source: "ci", Content: "tests failed"})
		m.put(human("stop"))
		v := f.ask(event(schema.PostToolUse))
		want(t, v, schema.Continue, "first:ok human_input:ok mid_stream_injection:ok last:ok")
		if got := listInjections(v); got != "first//0 human_input/human/2 mid_stream_injection/ci/1 last//0" {
			t.Error(got)
		}
		if !strings.Contains(v.Injections[1].Content, "[Human Input]: stop") {
			t.Errorf("%+v", v.Injections)
		}
	})
}

func TestWhoCanNotBeToldTakesNothingAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		m.put(human("stop"))
		e := event(schema.PostToolUse)
		e.Header.Set(schema.HeaderDeliver, schema.DeliverNone)
		if v := f.ask(e); len(v.Injections) > 0 {
			t.Errorf("%+v", v.Injections)
		}
		if got := listInjections(f.ask(with(event(schema.PostToolUse), id(2), 1))); got != "human_input/human/1" {
			t.Errorf("who can be told is told %q", got)
		}
	})
}

func TestAVerdictThatBlocksOrEndsClaimsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		event   schema.EventType
		result  schema.Result
		claimed bool
	}{
		"a deny on UserPromptSubmit blocks":        {schema.UserPromptSubmit, schema.Denied("no"), false},
		"feedback on PostToolUse holds nothing up": {schema.PostToolUse, schema.Denied("do better"), true},
		"fail ends the run":                        {schema.PostToolUse, schema.Result{Decision: schema.Fail}, false},
		"a retry goes on":                          {schema.BeforeFinalResponse, schema.Result{Decision: schema.Retry, Reason: "again"}, true},
		"no opinion goes on":                       {schema.BeforeLLMCall, schema.Result{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				f := remembering(t, m, library{"says": says(c.result)}, hook("says", at(c.event)), stage(schema.HumanInput, c.event))
				m.put(human("x"))
				v := f.ask(event(c.event))
				if got := listInjections(v) != ""; got != c.claimed || len(m.recorded("claim")) == 0 == c.claimed {
					t.Errorf("%+v, %q", v, m.recorded(""))
				}
			})
		})
	}
}

func TestTheSameEventAskedAgainGetsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.MidStreamInjection, schema.PostToolUse))
		m.put(&schema.Item{Source: schema.SourcePeer, Content: "42", Answer: &schema.PeerAnswer{Name: "agent2", Label: "agent2.1"}})
		first := f.ask(event(schema.PostToolUse))
		for attempt := 1; attempt <= 2; attempt++ {
			if attempt == 2 {
				m.put(&schema.Item{Source: "ci", Content: "came later"})
			}
			again := f.ask(with(event(schema.PostToolUse), eventID, attempt))
			if diff := cmp.Diff(first.Injections, again.Injections); diff != "" || listInjections(first) == "" {
				t.Errorf("attempt %d: %s %q", attempt, diff, listInjections(first))
			}
		}
	})
}

func TestWithoutAnythingDueNothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse), stage(schema.RoundTimeoutPre, schema.PreToolUse))
		want(t, f.ask(event(schema.PostToolUse)), schema.Continue, "")
		want(t, f.ask(event(schema.PreToolUse)), schema.Continue, "")
		if calls := m.recorded(""); len(calls) > 0 {
			t.Errorf("the memory was asked: %q", calls)
		}
	})
}

func TestACallGoesOnWithoutAMemoryThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var log lockedBuffer
		f := startWith(t, aggregator.Options{Memory: m.all(), Stages: stages, Logger: slog.New(slog.NewTextHandler(&log, nil))}, library{}, stage(schema.HumanInput, schema.PostToolUse))
		m.put(human("x"))
		m.slow = true
		for range 3 {
			v, after := f.send(event(schema.PostToolUse)).verdict()
			if want(t, v, schema.Continue, ""); after > 200*time.Millisecond {
				t.Errorf("it took %v", after)
			}
		}
		if n := f.value("deliveries_cut_total"); n != 3 || strings.Count(log.String(), "calls continue without") != 1 {
			t.Errorf("%v were counted, the log says\n%s", n, &log)
		}
		m.slow = false
		if v := f.ask(event(schema.PostToolUse)); listInjections(v) == "" || strings.Count(log.String(), "can be reached again") != 1 {
			t.Errorf("%+v, the log says\n%s", v, &log)
		}
	})
}

func TestACallWithLittleTimeLeftIsAnsweredWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		m.put(human("x"))
		m.slow = true
		q := event(schema.PostToolUse)
		q.Header.Set(schema.HeaderLeft, "50ms")
		if _, after := f.send(q).verdict(); after >= 50*time.Millisecond {
			t.Errorf("it took %v", after)
		}
	})
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// breaks is a stage that takes all items of a source and panics in the method where.
type breaks struct{ source, where string }

func (b breaks) Choose(_ *schema.Receiver, _ *schema.Peers, due []*schema.Item) (some []*schema.Item) {
	if b.where == "choose" {
		panic("ouch")
	}
	for _, it := range due {
		if it.Source == b.source {
			some = append(some, it)
		}
	}
	return some
}

func (b breaks) Render(_ *schema.Receiver, items []*schema.Item) (out schema.Handout) {
	switch b.where {
	case "render":
		panic("ouch")
	case "nothing":
		return out
	}
	for _, it := range items {
		out.Injections = append(out.Injections, schema.Injection{Content: it.Content})
	}
	return out
}

func TestAStageThatBreaksLosesNothing(t *testing.T) {
	for where, outcome := range map[string]string{"choose": "error", "render": "error", "nothing": "error", "load": "load_error"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				opt := aggregator.Options{Memory: m.all(), Stages: func(h *schema.Hook) (any, error) {
					switch {
					case h.Handler == schema.HumanInput:
						return stages(h)
					case where == "load":
						return nil, fmt.Errorf("no such option")
					}
					return breaks{"ci", where}, nil
				}}
				f := startWith(t, opt, library{}, stage(schema.MidStreamInjection, schema.PostToolUse), stage(schema.HumanInput, schema.PostToolUse))
				m.put(&schema.Item{Source: "ci", Content: "cannot be said"})
				m.put(human("first"))
				v := f.ask(event(schema.PostToolUse))
				if len(v.HookErrors) != 1 || v.ExecutedHooks[0].Outcome != schema.OutcomeKind(outcome) {
					t.Errorf("%+v", v)
				}
				if where == "render" || where == "nothing" {
					if listInjections(v) != "" {
						t.Errorf("the acknowledgement of this would count for all items: %q", listInjections(v))
					}
					// The lease ends, and the items are due again.
					m.mu.Lock()
					m.items, m.leases = append(m.leases[eventID], m.items...), map[string][]*schema.Item{}
					m.mu.Unlock()
					v = f.ask(with(event(schema.PostToolUse), id(2), 1))
				}
				if listInjections(v) != "human_input/human/2" {
					t.Errorf("what others say is held up: %+v", v)
				}
				if n := m.Pending("a", 1).Total; n != 1 {
					t.Errorf("%d items wait", n)
				}
			})
		})
	}
}

// chokes is a stage that cannot say one text.
type chokes struct{ breaks }

func (c chokes) Render(r *schema.Receiver, items []*schema.Item) schema.Handout {
	for _, it := range items {
		if it.Content == "poison" {
			panic("ouch")
		}
	}
	return c.breaks.Render(r, items)
}

// TestWhatCanNotBeSaidHoldsBackItsSourceOnly checks that an item that cannot be rendered delays
// only its own source, and not without end.
func TestWhatCanNotBeSaidHoldsBackItsSourceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := startWith(t, aggregator.Options{Memory: m.all(), Stages: func(h *schema.Hook) (any, error) {
			if h.Handler == schema.HumanInput {
				return stages(h)
			}
			return chokes{breaks{source: "ci"}}, nil
		}}, library{}, stage(schema.MidStreamInjection, schema.PostToolUse), stage(schema.HumanInput, schema.PostToolUse))
		poison := &schema.Item{Source: "ci", Content: "poison"}
		m.put(poison)
		lapse := func() { // the lease ends
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, items := range m.leases {
				m.items = append(slices.Clone(items), m.items...)
			}
			clear(m.leases)
		}
		f.ask(with(event(schema.PostToolUse), id(1), 1))
		lapse()
		m.put(&schema.Item{Source: "ci", Content: "later"})
		m.put(human("now"))
		if got := listInjections(f.ask(with(event(schema.PostToolUse), id(2), 1))); got != "human_input/human/3" {
			t.Errorf("%q came", got)
		}
		m.mu.Lock()
		clear(m.leases) // it was acknowledged
		m.mu.Unlock()
		poison.Content = "mended"
		<-time.After(10 * time.Minute)
		if got := listInjections(f.ask(with(event(schema.PostToolUse), id(3), 1))); got != "mid_stream_injection/ci/1 mid_stream_injection/ci/2" {
			t.Errorf("%q came", got)
		}
	})
}

func TestWhatAStageLeavesOutIsFilledIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := startWith(t, aggregator.Options{Memory: m.all(), Stages: func(*schema.Hook) (any, error) { return breaks{source: "ci"}, nil }},
			library{}, stage(schema.HumanInput, schema.PostToolUse))
		m.put(&schema.Item{Source: "ci", Content: "one"})
		m.put(&schema.Item{Source: "ci", Content: "two"})
		got := f.ask(event(schema.PostToolUse)).Injections
		wanted := []schema.Injection{
			{Content: "one", Strategy: schema.ToolResult, Hook: schema.HumanInput, Source: "ci", Sequence: 1},
			{Content: "two", Strategy: schema.ToolResult, Hook: schema.HumanInput, Source: "ci", Sequence: 2},
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLongTextsAreThereIfTheyFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		for _, text := range []string{strings.Repeat("x", 3<<20), strings.Repeat("y", 2<<20)} {
			o, err := m.PutWithin(context.Background(), strings.NewReader(text), 100)
			if err != nil {
				t.Fatal(err)
			}
			m.put(&schema.Item{Source: schema.SourceHuman, Object: &o})
		}
		got := f.ask(event(schema.PostToolUse)).Injections
		inline, fetched := 0, 0
		for _, in := range got {
			if in.Object != nil {
				fetched++
				if in.Object.Size != 2<<20 {
					t.Errorf("%+v", in.Object)
				}
			} else {
				inline += len(in.Content)
			}
		}
		if fetched != 1 || inline < 3<<20 {
			t.Errorf("%d are to be fetched, %d bytes are there", fetched, inline)
		}
	})
}

// As JSON it is six times as long, and no verdict could hold it.
func TestATextOfControlCharactersIsLeftToBeFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		o, err := m.PutWithin(context.Background(), strings.NewReader(strings.Repeat("\x1b", 3<<20)), 100)
		if err != nil {
			t.Fatal(err)
		}
		m.put(&schema.Item{Source: schema.SourceHuman, Object: &o})
		m.put(human("after it"))
		v := f.ask(event(schema.PostToolUse))
		if len(v.HookErrors) > 0 || !strings.Contains(v.Injections[len(v.Injections)-1].Content, "after it") {
			t.Errorf("%q, %q", listInjections(v), v.HookErrors)
		}
	})
}

func TestARestartAndWorkspacesAreInTheVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.peers.VoteOnly = true
		f := remembering(t, m, library{}, stage(schema.MidStreamInjection, schema.PostToolUse))
		m.put(&schema.Item{Source: schema.SourcePeer, Content: "see /w/x", Answer: &schema.PeerAnswer{
			Name: "agent2", Label: "agent2.1", Workspace: "/w", Snapshot: &schema.Object{Digest: "d", Size: 1},
		}})
		v := f.ask(event(schema.PostToolUse))
		if v.Restart == nil || !strings.Contains(v.Restart.Content, schema.WorkspacePath("agent2")) || len(v.Workspaces) != 1 {
			t.Errorf("%+v", v)
		}
	})
}

// TestARestartWaitsForAMomentAtWhichOneCanBe checks a runtime that cannot restart in the middle of
// a turn. Items that need a restart wait for the end of the turn or for the next prompt, and delay
// no other items.
func TestARestartWaitsForAMomentAtWhichOneCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, next := range []schema.EventType{schema.BeforeFinalResponse, schema.UserPromptSubmit, schema.PostToolUse} {
			m := newMemory()
			m.peers.VoteOnly = true
			f := remembering(t, m, library{}, stage(schema.MidStreamInjection, schema.PostToolUse), stage(schema.HumanInput, schema.PostToolUse),
				stage(schema.MidStreamInjection, schema.BeforeFinalResponse, func(h *schema.Hook) { h.Name = "at the end" }))
			for _, label := range []string{"agent2.1", "agent3.1"} {
				m.put(&schema.Item{Source: schema.SourcePeer, Content: "see " + label, Answer: &schema.PeerAnswer{Name: label[:6], Label: label, Workspace: "/w"}})
			}
			m.put(human("mind the gap"))
			numbered := func(n int, t schema.EventType) *nats.Msg {
				q := event(t)
				q.Header.Set(schema.HeaderID, fmt.Sprintf("01980000-0000-7000-8000-%012d", n))
				return q
			}
			for n := range 2 {
				q := numbered(n, schema.PostToolUse)
				q.Header.Set(schema.HeaderRestart, schema.RestartNone)
				v := f.ask(q)
				if v.Restart != nil || len(v.HookErrors) > 0 || strings.Contains(listInjections(v), "agent2") {
					t.Errorf("in the midst of a turn: %+v", v)
				}
			}
			v := f.ask(numbered(2, next))
			if v.Restart == nil || strings.Index(v.Restart.Content, "see agent2.1") > strings.Index(v.Restart.Content, "see agent3.1") ||
				!strings.Contains(v.Restart.Content, "see agent2.1") {
				t.Errorf("%s: %+v", next, v)
			}
			if got := v.Decision; (got == schema.Retry) != (next == schema.BeforeFinalResponse) {
				t.Errorf("%s: %s", next, got)
			}
		}
	})
}

// Where no stage stands at a prompt, it brings nothing but that.
func TestAPromptBringsNothingButARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.MidStreamInjection, schema.PostToolUse))
		m.put(&schema.Item{Source: schema.SourcePeer, Content: "an answer", Answer: &schema.PeerAnswer{Name: "agent2", Label: "agent2.1"}})
		m.put(&schema.Item{Source: schema.SourceReminder, Content: "a reminder"})
		if v := f.ask(event(schema.UserPromptSubmit)); v.Restart != nil || len(v.Injections) > 0 {
			t.Errorf("%+v", v)
		}
		m.peers.VoteOnly = true
		q := event(schema.UserPromptSubmit)
		q.Header.Set(schema.HeaderID, "01980000-0000-7000-8000-000000000001")
		if v := f.ask(q); v.Restart == nil || len(v.Injections) > 0 {
			t.Errorf("%+v", v)
		}
	})
}

func TestEachInjectionIsLoggedAndItsContentIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var log lockedBuffer
		f := startWith(t, aggregator.Options{Memory: m.all(), Stages: stages, Logger: slog.New(slog.NewTextHandler(&log, nil))}, library{}, stage(schema.HumanInput, schema.PostToolUse))
		records := f.records()
		m.put(human("a secret"))
		f.ask(event(schema.PostToolUse))
		got := records()
		if len(got) != 1 || len(got[0].Injections) != 1 || got[0].Injections[0].Sequence != 1 || got[0].Injections[0].Length == 0 {
			t.Errorf("%+v", got)
		}
		line := log.String()
		for _, part := range []string{"[INJECTION]", "agent=a", "source=human", "strategy=tool_result", "length=23", "sequence=1"} {
			if !strings.Contains(line, part) {
				t.Errorf("the log does not say %s: %s", part, line)
			}
		}
		if strings.Contains(line, "secret") {
			t.Error(line)
		}
	})
}

func TestACheckListIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.MidStreamInjection, schema.PostToolUse, func(h *schema.Hook) {
			h.Options = map[string]any{"defer_peer_updates_until_restart": true, "allow_midstream_peer_updates_before_checklist_submit": true}
		}))
		ask := func(tool, output string) {
			q := event(schema.PostToolUse)
			q.Header.Set(schema.HeaderTool, tool)
			q.Data = []byte(`{"tool_name":"` + tool + `","tool_output":` + output + `}`)
			want(t, f.ask(q), schema.Continue, "")
		}
		ask("mcp__x__submit_checklist", `{"status":"rejected"}`)
		ask("Bash", `{"status":"accepted"}`)
		if m.peers.Checked != 0 {
			t.Errorf("%+v", m.peers)
		}
		ask("mcp__x__submit_checklist", `[{"type":"text","text":"{\"status\":\"accepted\"}"}]`)
		ask("mcp__x__submit_checklist", `{"status":"accepted"}`)
		if n := len(m.recorded("note")); m.peers.Checked != 1 || n != 1 {
			t.Errorf("%+v after %d notes", m.peers, n)
		}
	})
}

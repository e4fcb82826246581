package bus

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestEventSubject(t *testing.T) {
	for _, typ := range schema.EventTypes() {
		for _, agent := range []string{"agent1", "a.b", "_", "é *>"} {
			subj, err := EventSubject(agent, typ)
			if err != nil {
				t.Fatal(err)
			}
			gotAgent, gotType, err := ParseEventSubject(subj)
			if err != nil || gotAgent != agent || gotType != typ {
				t.Errorf("ParseEventSubject(%q) = %q, %q, %v", subj, gotAgent, gotType, err)
			}
		}
	}
	for name, want := range map[schema.EventType]schema.EventType{"BEFORE_TOOL_EXECUTION": schema.PreToolUse, "QUERY_END": schema.QueryEnd, "Stop": schema.BeforeFinalResponse} {
		if _, got, err := ParseEventSubject("hook.v1.event.a." + string(name)); err != nil || got != want {
			t.Errorf("the subject of %s is one of %q, %v", name, got, err)
		}
		if subj, err := EventSubject("a", name); err != nil || subj != "hook.v1.event.a."+string(want) {
			t.Errorf("EventSubject of %s = %q, %v", name, subj, err)
		}
	}
	if s, err := EventSubject("", schema.PreToolUse); err == nil {
		t.Errorf("EventSubject without an agent = %q", s)
	}
	if s, err := EventSubject("a", "PreTool"); err == nil || !strings.Contains(err.Error(), "PreToolUse") {
		t.Errorf("EventSubject of an unknown event = %q, %v", s, err)
	}
}

func TestParseEventSubjectRefuses(t *testing.T) {
	for name, subj := range map[string]string{
		"nothing":                  "",
		"another prefix":           "hook.v2.event.a.PreToolUse",
		"no event":                 "hook.v1.event.a",
		"an empty event":           "hook.v1.event.a.",
		"an empty agent":           "hook.v1.event..PreToolUse",
		"one token too many":       "hook.v1.event.a.PreToolUse.x",
		"an unknown event":         "hook.v1.event.a.pretooluse",
		"no agent":                 "hook.v1.event._.PreToolUse",
		"a non-canonical agent":    "hook.v1.event.=41.PreToolUse",
		"an agent that is a blank": "hook.v1.event. .PreToolUse",
	} {
		t.Run(name, func(t *testing.T) {
			if agent, typ, err := ParseEventSubject(subj); err == nil {
				t.Errorf("ParseEventSubject(%q) = %q, %q; want an error", subj, agent, typ)
			}
		})
	}
}

func TestPoolSubjects(t *testing.T) {
	run, err := RunSubject("gpu.1", "w 1")
	if want := "hook.v1.run.gpu=2E1.w=201"; err != nil || run != want {
		t.Errorf("RunSubject = %q, %v; want %q", run, err, want)
	}
	first, err := FirstContactSubject("default")
	if want := "hook.v1.run.default"; err != nil || first != want {
		t.Errorf("FirstContactSubject = %q, %v; want %q", first, err, want)
	}
	beat, err := BeatSubject("gpu.1", "w 1")
	if want := "hook.v1.beat.gpu=2E1.w=201"; err != nil || beat != want {
		t.Errorf("BeatSubject = %q, %v; want %q", beat, err, want)
	}
	pool, worker, err := ParseBeatSubject(beat)
	if err != nil || pool != "gpu.1" || worker != "w 1" {
		t.Errorf("ParseBeatSubject = %q, %q, %v", pool, worker, err)
	}
	for _, s := range []string{"hook.v1.beat.a", "hook.v1.beat..w", "hook.v1.beat.p.", "hook.v1.beat._.w", "hook.v1.run.p.w"} {
		if _, _, err := ParseBeatSubject(s); err == nil {
			t.Errorf("ParseBeatSubject(%q) succeeds", s)
		}
	}
	feed, err := FeedSubject("a/b")
	if want := "hook.v1.feed.a=2Fb"; err != nil || feed != want {
		t.Errorf("FeedSubject = %q, %v; want %q", feed, err, want)
	}
	for name, err := range map[string]error{
		"run without pool": second(RunSubject("", "w")), "run without worker": second(RunSubject("p", "")),
		"first contact without pool": second(FirstContactSubject("")), "feed without agent": second(FeedSubject("")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second(_ string, err error) error { return err }

func TestControlSubject(t *testing.T) {
	for _, c := range []struct{ verb, agent, want string }{
		{"status", "", "hook.v1.ctl.status._"},
		{"inject", "a.b", "hook.v1.ctl.inject.a=2Eb"},
		{"inject", "_", "hook.v1.ctl.inject.=5F"},
	} {
		subj, err := ControlSubject(c.verb, c.agent)
		if err != nil || subj != c.want {
			t.Errorf("ControlSubject(%q, %q) = %q, %v; want %q", c.verb, c.agent, subj, err, c.want)
		}
		verb, agent, err := ParseControlSubject(subj)
		if err != nil || verb != c.verb || agent != c.agent {
			t.Errorf("ParseControlSubject(%q) = %q, %q, %v", subj, verb, agent, err)
		}
	}
	for _, verb := range []string{"", "Inject", "a.b", "1", "*", ">", strings.Repeat("a", 33)} {
		if s, err := ControlSubject(verb, ""); err == nil {
			t.Errorf("ControlSubject(%q) = %q; want an error", verb, s)
		}
	}
	for _, subj := range []string{"hook.v1.ctl.status", "hook.v1.ctl..a", "hook.v1.ctl.status.", "hook.v1.ctl.STATUS._", "hook.v1.ctl.status.a.b"} {
		if v, a, err := ParseControlSubject(subj); err == nil {
			t.Errorf("ParseControlSubject(%q) = %q, %q; want an error", subj, v, a)
		}
	}
}

func FuzzParseSubjects(f *testing.F) {
	for _, s := range []string{"hook.v1.event.a.PreToolUse", "hook.v1.beat.p.w", "hook.v1.ctl.status._", "hook.v1.event.=2E.x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subj string) {
		if agent, typ, err := ParseEventSubject(subj); err == nil {
			if back, err := EventSubject(agent, typ); err != nil || back != subj {
				t.Errorf("event: %q is read as %q, %q, which is written %q, %v", subj, agent, typ, back, err)
			}
		}
		if pool, worker, err := ParseBeatSubject(subj); err == nil {
			if back, err := BeatSubject(pool, worker); err != nil || back != subj {
				t.Errorf("beat: %q is read as %q, %q, which is written %q, %v", subj, pool, worker, back, err)
			}
		}
		if verb, agent, err := ParseControlSubject(subj); err == nil {
			if back, err := ControlSubject(verb, agent); err != nil || back != subj {
				t.Errorf("control: %q is read as %q, %q, which is written %q, %v", subj, verb, agent, back, err)
			}
		}
	})
}

// TestParsingAnOrdinarySubjectAllocatesNothing protects the cost of rejecting events under overload, which
// 'loadtest overload' measures: the subject is read before the broker decides whether to admit the event.
func TestParsingAnOrdinarySubjectAllocatesNothing(t *testing.T) {
	subj := "hook.v1.event.claude-0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182.PreToolUse"
	if n := testing.AllocsPerRun(100, func() { _, _, _ = ParseEventSubject(subj) }); n != 0 {
		t.Errorf("ParseEventSubject allocates %v times", n)
	}
}

func BenchmarkParseEventSubject(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = ParseEventSubject("hook.v1.event.claude-0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182.PreToolUse")
	}
}

func BenchmarkEventSubject(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = EventSubject("claude-0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", schema.PreToolUse)
	}
}

func TestAnswersGoToInboxesAndRepliesOfWorkersDoNot(t *testing.T) {
	for subject, is := range map[string]bool{
		"_INBOX.x.y": true, InboxOf("UKEY") + ".x": true, "_R_.x": true, "_GR_.x": true,
		"": false, "_INBOX": false, "_INBOXES.x": false, "hook.v1.ctl.inject.a": false, "$KV.hook_config.current": false, Replies() + "1": false,
	} {
		if IsInbox(subject) != is {
			t.Errorf("IsInbox(%q) = %v", subject, !is)
		}
	}
	for subject, is := range map[string]bool{Replies() + "1": true, "_INBOX.x.y": true, "hook.v1.ctl.inject.a": false, "": false} {
		if IsReply(subject) != is {
			t.Errorf("IsReply(%q) = %v", subject, !is)
		}
	}
	if one, other := Replies(), Replies(); one == other {
		t.Error("two brokers have the same reply subject")
	}
}

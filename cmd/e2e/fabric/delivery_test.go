package fabric_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// nothingWritten is a hooks.yaml that leaves all to the preset.
const nothingWritten = "hooks: {}\n"

func TestDelivery(t *testing.T) {
	inBubbles(t, []scenario{
		{"what a person says comes after the next tool call, once", saidOnce},
		{"a tool that fails brings it, too", saidAfterFailure},
		{"a call that is denied brings nothing, and the next one does", deniedBringsNothing},
		{"an item for all agents reaches each known agent once", saidToAll},
		{"an item with a matcher waits for its tool, and blocks no other item", waitsForItsTool},
		{"the sources have their places in the order of hooks", placesOfSources},
		{"unacknowledged items are delivered again, in order", comesAgain},
		{"the same event asked again brings the same, also to another process", sameEvent},
		{"a repeat of a numbered item is noticed", repeats},
		{"an agent that can only be told between turns drains", drains},
		{"where nothing is delivered it waits, until a configuration says otherwise", waitsWithoutPreset},
		{"a person's hook in a preset's place decides where it stands and for whom", inItsPlace},
		{"a high priority task that is done brings the reminder", reminds},
	})
}

func saidOnce(t *testing.T) {
	f := start(t, nothingWritten)
	a, b := f.loop("a"), f.loop("b")
	f.inject("a", &schema.InjectRequest{Content: "use the other parser"})
	if v := a.try("Bash"); len(v.Injections) > 0 {
		t.Errorf("before a tool: %+v", v.Injections)
	}
	f.holds("a", a.works("Bash"), "[Human Input]: use the other parser")
	if got := a.works("Bash") + b.works("Bash"); got != "" {
		t.Errorf("then, and to another agent: %s", got)
	}
	<-time.After(5 * time.Minute) // leases have long ended
	if got := a.works("Bash"); got != "" {
		t.Errorf("much later: %s", got)
	}
}

func saidAfterFailure(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "the disk is full"})
	v := a.ask(&schema.Event{HookType: schema.ToolError, ToolName: "Write", ToolInput: jsontext.Value(`{}`), Error: "no space left"})
	a.hear(v)
	f.holds("a", texts(a.read), "the disk is full")
	if v.Injections[0].Hook != "human_input-2" || v.Injections[0].Source != schema.SourceHuman {
		t.Errorf("%+v", v.Injections)
	}
}

func deniedBringsNothing(t *testing.T) {
	f := start(t, `hooks:
  UserPromptSubmit:
    - {type: builtin, handler: deny}
    - {type: builtin, handler: human_input}
  PostToolUse:
    - {type: builtin, handler: deny, options: {reason: tidy up}}
`)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "hello"})
	if v := a.ask(&schema.Event{HookType: schema.UserPromptSubmit, Prompt: "go"}); v.Decision != schema.Deny || len(v.Injections) > 0 {
		t.Errorf("%+v", v)
	}
	v := a.ran("Bash", `"done"`)
	a.hear(v)
	if v.Decision != schema.Deny || v.Reason != "tidy up" {
		t.Errorf("%+v", v)
	}
	f.holds("feedback", texts(a.read), "hello")
}

func saidToAll(t *testing.T) {
	f := start(t, nothingWritten)
	var all []*loop
	for i := range 5 {
		all = append(all, f.loop(fmt.Sprint("agent", i)))
	}
	f.settle()
	first := f.inject("", &schema.InjectRequest{All: true, Content: "the cluster goes down at noon"})
	kept := f.inject("", &schema.InjectRequest{All: true, Content: "welcome", LateJoiners: true})
	own := f.inject("late", &schema.InjectRequest{Content: "for you"})
	late := f.loop("late")
	for _, l := range all {
		l.works("Bash")
		l.works("Bash")
		f.onceEach(l.id, l.sequences(), []uint64{first.Sequence, kept.Sequence})
	}
	late.works("Bash")
	f.onceEach("who came late", late.sequences(), []uint64{kept.Sequence, own.Sequence})
}

func waitsForItsTool(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	later := f.inject("a", &schema.InjectRequest{Content: "mind the line ends", Matcher: "Write|Edit"})
	sooner := f.inject("a", &schema.InjectRequest{Content: "and hurry"})
	a.works("Bash")
	f.onceEach("after Bash it", a.sequences(), []uint64{sooner.Sequence})
	a.works("Write")
	f.onceEach("after Write it", a.sequences(), []uint64{sooner.Sequence, later.Sequence})
}

func placesOfSources(t *testing.T) {
	f := start(t, `hooks:
  PostToolUse:
    - {name: first, type: builtin, handler: inject_text, options: {text: from a hook}}
`)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Background: &schema.BackgroundResult{ID: "j1", Tool: "build", Status: "completed", Result: "ok"}})
	f.inject("a", &schema.InjectRequest{Subagent: &schema.SubagentResult{ID: "s1", Status: "timeout", Error: "too slow"}})
	f.inject("a", &schema.InjectRequest{Content: "a word"})
	f.inject("a", &schema.InjectRequest{Content: "tests are red", Source: "ci", Strategy: schema.UserMessage})
	v := a.ran("Bash", `"done"`)
	var got []string
	for _, in := range v.Injections {
		got = append(got, fmt.Sprintf("%s/%s/%s", in.Hook, in.Source, in.Strategy))
	}
	want := []string{
		"mid_stream_injection/ci/user_message", "human_input/human/tool_result", "subagent_complete/subagent/tool_result",
		"background_tool_complete/background/tool_result", "first//tool_result",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var trail []string
	for _, x := range v.ExecutedHooks {
		trail = append(trail, x.Hook)
	}
	if !slices.Equal(trail, []string{"mid_stream_injection", "human_input", "subagent_complete", "background_tool_complete", "first"}) {
		t.Errorf("the trail is %q", trail)
	}
	f.holds("a", texts(v.Injections), "tests are red", "a word", `id="s1" status="timeout"`, "too slow", "build", "from a hook")
}

func comesAgain(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	var want []uint64
	for i := range 3 {
		want = append(want, f.inject("a", &schema.InjectRequest{Content: fmt.Sprint("message ", i)}).Sequence)
	}
	if v := a.ran("Bash", `"done"`); len(v.Injections) == 0 {
		t.Fatalf("nothing came: %+v\n%s", v, f.log)
	}
	a.restart() // it died before it could hand anything over
	if got := a.works("Bash"); got != "" {
		t.Errorf("while the lease holds: %s", got)
	}
	<-time.After(time.Minute)
	f.holds("a", a.works("Bash"), "message 0", "message 1", "message 2")
	f.onceEach("a", a.sequences(), want)
}

func sameEvent(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "once"})
	e := schema.Event{HookType: schema.PostToolUse, ToolName: "Bash", ToolInput: jsontext.Value(`{}`), ToolOutput: jsontext.Value(`"x"`), EventID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"}
	first := e
	one := a.ask(&first)
	f.inject("a", &schema.InjectRequest{Content: "later"})
	a.restart()
	again := e
	two := a.ask(&again)
	if texts(one.Injections) != texts(two.Injections) || !strings.Contains(texts(two.Injections), "once") || strings.Contains(texts(two.Injections), "later") {
		t.Errorf("first %q, then %q", texts(one.Injections), texts(two.Injections))
	}
	a.hear(two)
	f.settle()
	if got := a.works("Bash"); strings.Contains(got, "once") || !strings.Contains(got, "later") {
		t.Errorf("afterwards: %s", got)
	}
}

func repeats(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	item := &schema.InjectRequest{Content: "build 7 is red", Source: "ci", Producer: "ci", Number: 7}
	first := f.inject("a", item)
	if again := f.inject("a", item); !again.Duplicate || again.Key != first.Key || again.Sequence != first.Sequence || again.State != schema.Queued {
		t.Errorf("first %+v, again %+v", first, again)
	}
	a.works("Bash")
	<-time.After(time.Minute)
	if again := f.inject("a", item); !again.Duplicate || again.State != schema.Delivered {
		t.Errorf("after it was delivered: %+v", again)
	}
	early := f.inject("a", &schema.InjectRequest{Content: "build 6 was green", Source: "ci", Producer: "ci", Number: 6})
	if early.Duplicate {
		t.Errorf("a late number: %+v", early)
	}
	a.works("Bash")
	f.onceEach("a", a.sequences(), []uint64{first.Sequence, early.Sequence})
}

func drains(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "one"})
	f.inject("a", &schema.InjectRequest{Content: "for writers", Matcher: "Write"})
	f.inject("", &schema.InjectRequest{Session: team, Content: "two", Source: "ci"})
	d, err := a.client.Drain(t.Context(), "a", team)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"one", "for writers", "two"} {
		f.holds("the drained message", d.Content, part)
	}
	if err := a.client.Ack(t.Context(), "a", d.EventID); err != nil {
		t.Error(err)
	}
	if got := a.works("Write"); got != "" {
		t.Errorf("afterwards: %s", got)
	}
}

func waitsWithoutPreset(t *testing.T) {
	f := start(t, "presets: []\n")
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "hello"})
	if got := a.works("Bash"); got != "" {
		t.Errorf("without the preset: %s", got)
	}
	if answer, failed := f.apply(nothingWritten, false); failed != nil || !answer.Changed {
		t.Fatalf("%+v %v", answer, failed)
	}
	synctest.Wait()
	f.holds("a", a.works("Bash"), "hello")
}

func inItsPlace(t *testing.T) {
	f := start(t, `hooks:
  PostToolUse:
    - {name: first, type: builtin, handler: inject_text, options: {text: first}}
    - {name: people, type: builtin, handler: human_input, matcher: Write}
agents:
  - id: hurried
    hooks:
      PostToolUse:
        override: true
        hooks: [{name: always, type: builtin, handler: human_input}]
`)
	a, hurried := f.loop("a"), f.loop("hurried")
	f.inject("", &schema.InjectRequest{Session: team, Content: "hello"})
	f.holds("after Bash", a.works("Bash"), "first")
	f.lacks("after Bash", texts(a.read), "hello")
	f.holds("after Write", a.works("Write"), "first", "hello")
	if ran, told := hurried.use("Bash"); !ran || len(told) != 1 || told[0].Hook != "always" {
		t.Errorf("the hurried one ran %t, and was told %+v", ran, told)
	}
}

func reminds(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	done := func(tool, priority string) *schema.Verdict {
		return a.ran(tool, fmt.Sprintf(`{"task":{"id":"t","status":"completed","priority":%q}}`, priority))
	}
	v := done("mcp__planning__update_task_status", "high")
	if len(v.Injections) != 1 || v.Injections[0].Hook != "high_priority_task_reminder" || v.Injections[0].Strategy != schema.UserMessage {
		t.Errorf("%+v\n%s", v, f.log)
	}
	for _, v := range []*schema.Verdict{done("mcp__planning__update_task_status", "low"), done("Bash", "high")} {
		if len(v.Injections) > 0 {
			t.Errorf("%+v", v)
		}
	}
}

// Parallel tool calls of one agent, while more comes: no item twice, none
// skipped, and each source in its order.
func TestParallelCallsTakeEachItemOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nothingWritten)
		a := f.loop("a")
		const rounds, calls, sources = 12, 8, 3
		accepted := map[string][]uint64{}
		var mu sync.Mutex
		got := map[string][]uint64{}
		for round := range rounds {
			for s := range sources {
				source := fmt.Sprint("source-", s)
				r := f.inject("a", &schema.InjectRequest{Content: fmt.Sprint(round), Source: source, Producer: source, Number: uint64(round + 1)})
				accepted[source] = append(accepted[source], r.Sequence)
			}
			var parallel sync.WaitGroup
			for range calls {
				parallel.Go(func() {
					v := a.ran("Bash", `"done"`)
					mu.Lock()
					defer mu.Unlock()
					for _, in := range v.Injections {
						got[in.Source] = append(got[in.Source], in.Items()...)
					}
					a.client.Handed(v.EventID)
				})
			}
			parallel.Wait()
			if round%3 == 2 { // else the next calls meet what is not acknowledged yet
				<-time.After(5 * time.Second)
			}
		}
		for range 2 {
			<-time.After(5 * time.Second)
			v := a.ran("Bash", `"done"`)
			for _, in := range v.Injections {
				got[in.Source] = append(got[in.Source], in.Items()...)
			}
			a.client.Handed(v.EventID)
		}
		for source, want := range accepted {
			f.onceEach("the agent", got[source], want)
		}
		if len(got) != sources {
			t.Errorf("it heard of %d sources", len(got))
		}
	})
}

package fabric_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// A turn does not end with something that the agent has not read.
func TestTheEndOfATurn(t *testing.T) {
	inBubbles(t, []scenario{
		{"what comes while the model writes its last message has the agent go on, once", goesOnOnce},
		{"what is for everybody has everybody go on", everybodyGoesOn},
		{"of two ends at one instant one brings it", oneOfTwoEnds},
		{"an end that was not acknowledged comes again, and the same end the same", endsAgain},
		{"an agent that was continued too often gets no items, and gets them in its next turn", leftForTheNextTurn},
		{"a hook's retry delivers items, and a fail does not", besideHooks},
		{"an item that is bound to a tool waits for that", boundToATool},
		{"a round's warning is not missed either", warnedAtTheEnd},
		{"a file can have it wait, or be told and no more", configuredOff},
		{"a person's hook at the end takes the preset's place", namedAtTheEnd},
	})
}

// finishes is the agent's last message of a turn; it reads what that brings.
func (l *loop) finishes(message string) *schema.Verdict {
	l.f.t.Helper()
	v := l.ask(&schema.Event{HookType: schema.BeforeFinalResponse, Message: jsontext.Value(`"` + message + `"`)})
	l.hear(v)
	return v
}

func goesOnOnce(t *testing.T) {
	f := start(t, nothingWritten)
	a, b := f.loop("a"), f.loop("b")
	if v := a.finishes("done"); v.Decision != schema.Continue || len(v.ExecutedHooks) > 0 {
		t.Errorf("with nothing to read: %+v", v)
	}
	f.inject("a", &schema.InjectRequest{Content: "use the other parser"})
	f.inject("a", &schema.InjectRequest{Content: "red", Source: "ci", Strategy: schema.UserMessage})
	v := a.finishes("done")
	if v.Decision != schema.Retry || !strings.Contains(v.Reason, "2 messages") || len(v.Injections) != 2 {
		t.Errorf("%+v", v)
	}
	f.holds("a", texts(a.read), "red", "[Human Input]: use the other parser")
	if v := a.finishes("done, with the other parser"); v.Decision != schema.Continue || len(v.Injections) > 0 {
		t.Errorf("the next end: %+v", v)
	}
	<-time.After(leaseOver)
	if v := a.finishes("done"); v.Decision != schema.Continue {
		t.Errorf("much later: %+v", v)
	}
	if v := b.finishes("done"); v.Decision != schema.Continue {
		t.Errorf("another agent: %+v", v)
	}
}

func everybodyGoesOn(t *testing.T) {
	f := start(t, nothingWritten)
	var all []*loop
	for i := range 3 {
		all = append(all, f.loop(fmt.Sprint("agent", i)))
	}
	f.settle()
	sent := f.inject("", &schema.InjectRequest{All: true, Content: "the cluster goes down at noon"})
	for _, l := range all {
		if v := l.finishes("done"); v.Decision != schema.Retry {
			t.Errorf("%s: %+v", l.id, v)
		}
		if v := l.finishes("done"); v.Decision != schema.Continue {
			t.Errorf("%s then: %+v", l.id, v)
		}
		f.onceEach(l.id, l.sequences(), []uint64{sent.Sequence})
	}
}

func oneOfTwoEnds(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	for range 20 {
		f.inject("a", &schema.InjectRequest{Content: "one word more"})
		verdicts := make([]*schema.Verdict, 2)
		var race sync.WaitGroup
		for i := range verdicts {
			race.Go(func() { verdicts[i] = a.ask(&schema.Event{HookType: schema.BeforeFinalResponse}) })
		}
		race.Wait()
		var decisions []schema.Decision
		for _, v := range verdicts {
			decisions = append(decisions, v.Decision)
			if brings := len(v.Injections) > 0; brings != (v.Decision == schema.Retry) {
				t.Errorf("%+v", v)
			}
			a.hear(v)
		}
		if slices.Sort(decisions); !slices.Equal(decisions, []schema.Decision{schema.Continue, schema.Retry}) {
			t.Errorf("%q", decisions)
		}
	}
}

func endsAgain(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "wait"})
	id := uuid.Must(uuid.NewV7()).String()
	for range 2 { // the first process dies with the answer
		v := a.ask(&schema.Event{HookType: schema.BeforeFinalResponse, EventID: id})
		if v.Decision != schema.Retry || len(v.Injections) != 1 {
			t.Errorf("%+v", v)
		}
		a.restart()
	}
	<-time.After(leaseOver)
	if v := a.finishes("done"); v.Decision != schema.Retry || len(a.read) != 1 {
		t.Errorf("after the lease: %+v", v)
	}
}

func leftForTheNextTurn(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "and the tests"})
	if v := a.ask(&schema.Event{HookType: schema.BeforeFinalResponse, Mute: true}); v.Decision != schema.Continue || len(v.Injections) > 0 {
		t.Errorf("%+v", v)
	}
	f.holds("the next turn", a.works("Bash"), "and the tests")
}

func besideHooks(t *testing.T) {
	f := start(t, `hooks:
  BeforeFinalResponse:
    - {name: says, type: builtin, handler: says, pool: go}
agents:
  - {id: b, hooks: {BeforeFinalResponse: [{type: builtin, handler: deny}]}}
`)
	f.serve("w", handlers{"says": func(_ context.Context, e *schema.Event) (schema.Result, error) {
		if e.AgentID == "b" {
			return schema.Result{}, nil
		}
		return schema.Result{Decision: schema.Retry, Reason: "the tests are red"}, nil
	}})
	a, b := f.loop("a"), f.loop("b")
	f.inject("b", &schema.InjectRequest{Content: "for later"})
	if v := b.finishes("done"); v.Decision != schema.Fail || len(v.Injections) > 0 {
		t.Errorf("%+v", v)
	}
	f.holds("the next turn", b.works("Bash"), "for later")
	f.inject("a", &schema.InjectRequest{Content: "and hurry"})
	if v := a.finishes("done"); v.Decision != schema.Retry || v.Reason != "the tests are red" || len(v.Injections) != 1 {
		t.Errorf("%+v", v)
	}
}

func boundToATool(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "mind the line ends", Matcher: "Write"})
	if v := a.finishes("done"); v.Decision != schema.Continue || len(v.Injections) > 0 {
		t.Errorf("%+v", v)
	}
	f.holds("after its tool", a.works("Write"), "mind the line ends")
}

func warnedAtTheEnd(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.loop("a")
	f.round("a", schema.RoundRequest{Action: schema.RoundStart, Initial: limit(time.Second)})
	<-time.After(2 * time.Second)
	if v := a.finishes("done"); v.Decision != schema.Retry || a.warnings() != 1 {
		t.Errorf("%+v", v)
	}
	if v := a.finishes("done"); v.Decision != schema.Continue || a.warnings() != 1 {
		t.Errorf("once more: %+v", v)
	}
}

func configuredOff(t *testing.T) {
	f := start(t, `hooks:
  PostToolUse: [{type: builtin, handler: human_input, options: {at_end: wait}}]
  BeforeFinalResponse: [{type: builtin, handler: subagent_complete, options: {at_end: tell}}]
`)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "later"})
	f.inject("a", &schema.InjectRequest{Subagent: &schema.SubagentResult{ID: "s", Status: "completed", Answer: "42"}})
	if v := a.finishes("done"); v.Decision != schema.Continue || len(v.Injections) != 1 || v.Injections[0].Source != schema.SourceSubagent {
		t.Errorf("%+v", v)
	}
	f.holds("the next turn", a.works("Bash"), "later")
}

func namedAtTheEnd(t *testing.T) {
	f := start(t, `presets: []
hooks:
  BeforeFinalResponse: [{name: people, type: builtin, handler: human_input}]
`)
	a := f.loop("a")
	f.inject("a", &schema.InjectRequest{Content: "wait"})
	f.inject("a", &schema.InjectRequest{Content: "red", Source: "ci"})
	if v := a.finishes("done"); v.Decision != schema.Retry || len(v.Injections) != 1 || v.Injections[0].Hook != "people" {
		t.Errorf("%+v", v)
	}
	if v := a.finishes("done"); v.Decision != schema.Continue {
		t.Errorf("what no hook hands over: %+v", v)
	}
}

// TestABrokerThatDiesEndsNoTurn has one of two brokers die between its claim of the waiting items
// and its verdict. The agent continues with the items all the same, and gets them once.
func TestABrokerThatDiesEndsNoTurn(t *testing.T) {
	for _, p := range []point{point(queue.StepClaimBegun), point(queue.StepClaimStored), verdictDecided, verdictSent} {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, cell{row: pointRow{point: p, asked: true, handing: true}, role: brokerDies, way: oneShot})
				p := w.play(false)
				a := p.agents[0]
				for len(p.accepted[a.id]) < 3 {
					n := len(p.accepted[a.id]) + 1
					p.teller.request(schema.VerbInject, a.id, &schema.InjectRequest{
						Content: fmt.Sprintf("note ci:%d for %s", n, a.id), Source: "ci", Producer: "ci", Number: uint64(n)}, &schema.Receipt{})
					p.accepted[a.id] = append(p.accepted[a.id], fmt.Sprintf("ci:%d", n))
					p.endsUntilRead(a, n)
				}
				p.teller.close()
				a.die()
				if p.twice() {
					t.Error("something came twice")
				}
				if !w.hit {
					t.Error("no broker died")
				}
			})
		})
	}
}

// endsUntilRead has an agent end its turn until it has read n notes, which must
// have it go on.
func (p *play) endsUntilRead(a *askAgent, n int) {
	p.t.Helper()
	for range 10 {
		heard := len(a.heard)
		v := a.call(schema.BeforeFinalResponse, "")
		if brought := len(a.heard) > heard; v != nil && brought != (v.Decision == schema.Retry) {
			p.t.Errorf("%d notes come with %+v", len(a.heard)-heard, v)
		}
		if len(a.heard) >= n {
			return
		}
		<-time.After(5 * time.Second)
	}
	p.t.Errorf("of %d notes %q were read\n%s", n, a.heard, p.log)
}

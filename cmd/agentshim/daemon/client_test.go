package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAClientIsJudgedForAndSaysWhatItHas(t *testing.T) {
	p := serving(t, &bench{})
	c := &Client{Socket: p.socket}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	j := c.Ask(ctx, call(schema.PreToolUse, "pre/1", `{"command":"ls"}`))
	if j.Unjudged != nil || j.Verdict.Decision != schema.Deny || j.Verdict.EventID != "e1" || len(j.Verdict.Injections) != 1 {
		t.Fatalf("%+v, %v", j.Verdict, j.Unjudged)
	}
	if e := p.first(); e.ToolName != "Bash" || e.EventID == "" || e.Mute {
		t.Errorf("%+v", e)
	}
	if again := c.Ask(ctx, call(schema.PreToolUse, "pre/1", `{"command":"ls"}`)); len(again.Verdict.Injections) != 0 || p.count() != 1 {
		t.Errorf("%+v after %d questions", again.Verdict, p.count())
	}
	c.Handed(ctx, j.Verdict, time.Second)
	bustest.Eventually(t, "it is handed over", func() bool { return len(p.handedOver()) == 1 })
	st, err := Ask(ctx, p.socket)
	if err != nil || st.Shared != 1 || st.NATS != "nats://here" {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestAClientWithoutADaemonAsksSomebodyElse(t *testing.T) {
	p := serving(t, &bench{})
	other := &bench{}
	for name, c := range map[string]*Client{
		"there is none":        {Socket: filepath.Join(t.TempDir(), "none"), Else: other},
		"it is of another bus": {Socket: p.socket, NATS: "nats://there", Else: other},
	} {
		t.Run(name, func(t *testing.T) {
			before := other.count()
			j := c.Ask(t.Context(), call(schema.PreToolUse, "", `{}`))
			if other.count() != before+1 || j.Verdict.Decision != schema.Deny || p.count() != 0 {
				t.Errorf("%+v", j)
			}
			if c.Handed(t.Context(), j.Verdict, time.Second); len(other.handed) != before+1 {
				t.Error("nobody hears what was handed over")
			}
		})
	}
	alone := &Client{Socket: filepath.Join(t.TempDir(), "none")}
	q := call(schema.PreToolUse, "", `{}`)
	if j := alone.Ask(t.Context(), q); j.Unjudged == nil || j.Verdict.Decision != schema.None {
		t.Errorf("%+v", j)
	}
	junk := q
	junk.Unreadable = errors.New("junk")
	if j := alone.Ask(t.Context(), junk); !errors.Is(j.Unjudged, junk.Unreadable) || !strings.HasPrefix(j.Verdict.HookErrors[0], "junk; ") || strings.Contains(j.Verdict.HookErrors[0], "\n") {
		t.Errorf("one line does not say both causes: %+v, %v", j.Verdict, j.Unjudged)
	}
	q.Unreachable = decide.UnreachableDeny
	if j := alone.Ask(t.Context(), q); !errors.Is(j.Unjudged, ErrAbsent) || j.Verdict.Decision != schema.Deny {
		t.Errorf("%+v", j)
	}
}

func TestAClientThatGivesUpIsNotKept(t *testing.T) {
	asked := make(chan struct{})
	p := serving(t, &bench{says: func(ctx context.Context, _ decide.Question) decide.Judgement {
		close(asked)
		<-ctx.Done()
		return decide.Judgement{Verdict: &schema.Verdict{}, Unjudged: context.Cause(ctx)}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	go func() { <-asked; cancel() }()
	if j := (&Client{Socket: p.socket}).Ask(ctx, call(schema.PreToolUse, "", `{}`)); j.Unjudged == nil {
		t.Errorf("%+v", j)
	}
}

// The daemon also gets the fields that the event's JSON does not contain.
func TestAClientSaysThatItsAgentCanBeToldNothing(t *testing.T) {
	p := serving(t, &bench{})
	q := call(schema.PostToolUse, "", `{}`)
	q.Event.Mute, q.Event.MidTurn = true, true
	if (&Client{Socket: p.socket}).Ask(t.Context(), q); !p.first().Mute || !p.first().MidTurn {
		t.Errorf("%+v", p.first())
	}
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAskReturnsTheVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Deny, "no") })
		e := event()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		v, err := f.client.Ask(ctx, e)
		if err != nil || v.Decision != schema.Deny || v.Reason != "no" {
			t.Fatalf("%+v, %v", v, err)
		}
		if diff := cmp.Diff(event(), e); diff != "" {
			t.Errorf("the caller's event was changed: %s", diff)
		}
		q := f.questions()[0]
		id, err := uuid.Parse(q.ID)
		if err != nil || id.Version() != 7 {
			t.Errorf("the event's id is %q", q.ID)
		}
		if q.Attempt != 1 || q.Agent != "agent/1" || q.Session != "s 1" || q.Tool != "mcp__données" || q.Left != 57*time.Second {
			t.Errorf("%+v", q.EventRequest)
		}
		if !strings.Contains(string(q.Body), `"event_id":"`+q.ID+`"`) {
			t.Errorf("the body is %s", q.Body)
		}
	})
}

func TestAskKeepsAnEventsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Continue, "") })
		e := event()
		e.EventID = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"
		if _, err := f.client.Ask(t.Context(), e); err != nil || f.questions()[0].ID != e.EventID {
			t.Errorf("%v, asked as %q", err, f.questions()[0].ID)
		}
	})
}

func TestInvalidEventsAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { t.Error("it was asked") })
		for name, c := range map[string]struct {
			change func(*schema.Event)
			want   error
			says   string
		}{
			"no agent":         {func(e *schema.Event) { e.AgentID = "" }, client.ErrInvalid, "name the agent"},
			"no event":         {func(e *schema.Event) { e.HookType = "" }, client.ErrInvalid, "write one of"},
			"an unknown event": {func(e *schema.Event) { e.HookType = "PreCoffee" }, client.ErrInvalid, "PreCoffee"},
			"too long a name":  {func(e *schema.Event) { e.AgentID = strings.Repeat("x", 129) }, client.ErrInvalid, "agent_id"},
			"invalid JSON":     {func(e *schema.Event) { e.ToolInput = []byte(`{`) }, client.ErrInvalid, ""},
		} {
			e := event()
			c.change(e)
			if v, err := f.client.Ask(t.Context(), e); !errors.Is(err, c.want) || v != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestATooLargeEventIsSentWithoutItsContents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) {
			if !strings.Contains(string(q.Body), "at most 8323072") || q.Tool == "" {
				t.Errorf("asked with %.200s about %q", q.Body, q.Tool)
			}
			q.answer(schema.Deny, "malformed")
		})
		e := event()
		e.Prompt = strings.Repeat("x", schema.MaxEvent)
		v, err := f.client.Ask(t.Context(), e)
		if err != nil || v.Decision != schema.Deny || !strings.Contains(v.Reason, "at most 8323072") || len(v.HookErrors) != 1 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

func TestAnUnreadableEventIsJudgedByItsRouting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Continue, "") })
		v, err := f.client.AskUnreadable(t.Context(), event(), errors.New("stdin was junk"))
		if err != nil || v.Decision != schema.Continue || v.Reason != "" || !strings.Contains(v.HookErrors[0], "stdin was junk") {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

func TestAnEventOverTheServersLimitIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, MaxPayload: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		defer s.WaitForShutdown()
		defer s.Shutdown()
		c, err := client.Connect(t.Context(), client.Options{InProcess: s})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		e := event()
		e.Prompt = strings.Repeat("x", 1<<20)
		start := time.Now()
		// The client then asks without the contents, and no aggregator is there to
		// answer.
		if _, err := c.Ask(t.Context(), e); !errors.Is(err, client.ErrUnreachable) || time.Since(start) > 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestAnUnreadableVerdictIsAnError(t *testing.T) {
	for name, data := range map[string]string{
		"invalid JSON": `{`, "no decision": `{"reason":"x"}`, "an empty decision": `{"decision":""}`,
		"a list": `[]`, "a decision of a wrong type": `{"decision":5}`, "two decisions": `{"decision":"allow","decision":"deny"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, client.Options{})
				f.serve(func(q *question) { _ = q.m.Respond([]byte(data)) })
				if v, err := f.ask(time.Minute); !errors.Is(err, client.ErrUnanswered) {
					t.Errorf("%+v, %v", v, err)
				}
			})
		})
	}
}

func TestManyCallsShareOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		f.serve(func(q *question) { q.answer(schema.Allow, q.Agent) })
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for j := range 20 {
					e := event()
					e.AgentID = fmt.Sprintf("agent-%d-%d", i, j)
					if v, err := f.client.Ask(t.Context(), e); err != nil || v.Reason != e.AgentID {
						t.Errorf("%s: %+v, %v", e.AgentID, v, err)
					}
				}
			})
		}
		wg.Wait()
		if n := len(f.questions()); n != 1000 {
			t.Errorf("%d questions", n)
		}
	})
}

package daemon

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// A side is one of the two programs that see a call: the runtime's hook, or the proxy in
// front of the MCP server.
type side struct {
	runtime, hookName, agent, session string
	byID                              bool
}

// sees returns the question of a hook.
func (s side) sees(t schema.EventType, id, input string) decide.Question {
	phase, output := "pre/", ""
	if after(t) {
		phase, output = "post/", `"as the hook sees it"`
	}
	return decide.Question{Key: phase + id, ByID: s.byID, Pair: id, Event: &schema.Event{
		HookType: t, AgentID: s.agent, SessionID: s.session, Runtime: s.runtime, ToolName: s.hookName, ToolKind: schema.KindMCP,
		ToolInput: jsontext.Value(input), ToolOutput: jsontext.Value(output)}}
}

// proxied returns the question of a proxy about its call own.
func (s side) proxied(t schema.EventType, own, input string) decide.Question {
	q := s.sees(t, own, input)
	q.ByID, q.Apart = true, s.hookName
	q.Event.AgentID, q.Event.SessionID = "guess", "of the proxy"
	if s.runtime != "gemini" { // proxies use its own name
		q.Event.ToolName = "mcp__things__echo"
	}
	if after(t) {
		q.Event.ToolOutput = jsontext.Value(`{"as":"the proxy sees it"}`)
	}
	return q
}

// clients returns the runtimes that send MCP servers neither a session nor the id of a
// call.
func clients() map[string]side {
	return map[string]side{
		"gemini":   {"gemini", "mcp_things_echo", "gemini-s1", "s1", false},
		"copilot":  {"copilot", "things-echo", "copilot-s1", "s1", false},
		"qwen":     {"qwen", "mcp__things__echo", "qwen-s1", "s1", true},
		"opencode": {"opencode", "things_echo", "opencode-s1", "s1", true},
	}
}

// Both sides are judged once if they have one name for the tool. Otherwise each is judged
// under its own name, for the same agent. The agent gets what hooks inject once either way.
func TestAHookAndAProxyThatKnowsNoIDAreToldOnce(t *testing.T) {
	for name, s := range clients() {
		questions := 2
		if name == "copilot" || name == "opencode" {
			questions = 4
		}
		for _, wait := range []time.Duration{0, time.Minute} { // as long as a tool runs
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := &bench{says: injects}
					all := newFlights(b)
					for i, id := range []string{"one", "two"} { // the same call again is another one
						if !s.byID {
							id = "same"
						}
						told := 0
						ask := func(q decide.Question, borrow bool) {
							d := &delivery{all: all, borrow: borrow}
							told += len(d.Ask(t.Context(), q).Verdict.Injections)
							d.written(t.Context())
						}
						own := fmt.Sprint("own", i)
						ask(s.sees(schema.PreToolUse, id, `{"message":"hello"}`), false)
						ask(s.proxied(schema.PreToolUse, own, `{ "message" : "hello" }`), true)
						<-time.After(wait)
						ask(s.proxied(schema.PostToolUse, own, `{"message":"hello"}`), true)
						ask(s.sees(schema.PostToolUse, id, `{"message":"hello"}`), false)
						if b.count() != questions*(i+1) || told != 2 {
							t.Fatalf("call %d: %d questions, %d times told something", i+1, b.count()-questions*i, told)
						}
						for _, e := range b.asked[questions*i:] {
							if e.AgentID != s.agent || e.SessionID != s.session || e.ToolName != s.hookName && (e.ToolName != "mcp__things__echo" || !e.Mute) {
								t.Errorf("the question is about %s of %s in %s", e.ToolName, e.AgentID, e.SessionID)
							}
						}
					}
				})
			})
		}
	}
}

// injects is a judge that adds an injection to every verdict.
func injects(_ context.Context, q decide.Question) decide.Judgement {
	return decide.Judgement{Verdict: &schema.Verdict{EventID: string(q.Event.HookType), Injections: []schema.Injection{{Content: "mind the gap"}}}}
}

// A proxy without an agent's name takes a hook's call for its own only while another agent
// is unlikely to have made it: the verdict may not reach another agent.
func TestWhoseCallAProxyTakes(t *testing.T) {
	const own, ofSubagent = "guess", schema.EventType("the end of a subagent's turn")
	passes, asks := schema.None, schema.Ask
	for name, c := range map[string]struct {
		client string
		said   schema.Decision  // to the hook
		wait   time.Duration    // until the proxy sees a call
		then   schema.EventType // the next event of the hook's session; empty: none
		named  bool             // the proxy knows its agent
		agent  string           // empty: the hook's
		told   int              // by the proxy
	}{
		"the hook asked a moment ago":                             {"opencode", passes, time.Second, "", false, "", 0},
		"the hook asked a while ago":                              {"opencode", passes, certainFor, "", false, own, 0},
		"the hook asked minutes ago":                              {"qwen", passes, 9 * time.Minute, "", false, own, 0},
		"the hook asked a while ago, and the agent is named":      {"qwen", passes, 9 * time.Minute, "", true, "", 0},
		"the hook asked too long ago":                             {"qwen", passes, forProxies, "", false, own, 1},
		"a person decides":                                        {"copilot", asks, 9 * time.Minute, "", false, "", 0},
		"a person decides, and a subagent ends its turn":          {"copilot", asks, time.Minute, ofSubagent, false, "", 0},
		"a person decided, and the agent's turn is over":          {"qwen", asks, time.Minute, schema.BeforeFinalResponse, false, own, 0},
		"a person decided, and there is a prompt":                 {"qwen", asks, time.Minute, schema.UserPromptSubmit, false, own, 0},
		"a person cannot be asked, so that the call is refused":   {"gemini", asks, time.Second, "", false, own, 1},
		"a person cannot be asked, so that OpenCode refuses, too": {"opencode", asks, time.Second, "", false, own, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := &bench{}, clients()[c.client]
				b.says = func(ctx context.Context, q decide.Question) decide.Judgement {
					j := injects(ctx, q)
					j.Verdict.Decision = c.said
					if q.Event.AgentID == own {
						j.Verdict.Decision = schema.Deny
					}
					return j
				}
				all := newFlights(b)
				(&delivery{all: all}).Ask(t.Context(), s.sees(schema.PreToolUse, "one", `{}`))
				<-time.After(c.wait)
				if e := (schema.Event{HookType: c.then, Runtime: s.runtime, AgentID: s.agent, SessionID: s.session}); c.then != "" {
					if c.then == ofSubagent {
						e.HookType, e.Labels = schema.BeforeFinalResponse, map[string]string{"subagent": "x"}
					}
					(&delivery{all: all}).Ask(t.Context(), decide.Question{Event: &e})
				}
				q := s.proxied(schema.PreToolUse, "own", `{}`)
				want := c.agent
				if want == "" {
					want = s.agent
				}
				if c.named {
					q.Event.AgentID = s.agent
				}
				v := (&delivery{all: all, borrow: !c.named}).Ask(t.Context(), q).Verdict
				last := b.asked[len(b.asked)-1]
				if last.AgentID != want || last.Mute == (c.told > 0) || (v.Decision == schema.Deny) != (want == own) {
					t.Errorf("the question is about %s (mute: %t), and the answer %q", last.AgentID, last.Mute, v.Decision)
				}
			})
		})
	}
}

// A call stays open while its hook waits for the verdict.
func TestAProxyTakesACallWhoseHookStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &bench{}, clients()["opencode"]
		b.says = func(_ context.Context, q decide.Question) decide.Judgement {
			if q.Apart == "" {
				<-time.After(2 * time.Minute)
			}
			return decide.Judgement{Verdict: &schema.Verdict{}}
		}
		all := newFlights(b)
		var wait sync.WaitGroup
		wait.Go(func() { (&delivery{all: all}).Ask(t.Context(), s.sees(schema.PreToolUse, "one", `{}`)) })
		<-time.After(time.Minute)
		(&delivery{all: all, borrow: true}).Ask(t.Context(), s.proxied(schema.PreToolUse, "own", `{}`))
		if last := b.asked[len(b.asked)-1]; b.count() != 2 || last.AgentID != s.agent || !last.Mute {
			t.Errorf("%d questions, the last one about %s", b.count(), last.AgentID)
		}
		wait.Wait()
	})
}

// If it is unclear which agent made a call, the proxy takes no call, and only the hooks
// hand over items.
func TestAProxyTakesNoCallThatMayBeAnother(t *testing.T) {
	s := clients()["gemini"]
	other := s
	other.agent, other.session = "gemini-s2", "s2"
	for name, c := range map[string]struct {
		hooks  []decide.Question
		proxy  decide.Question
		borrow bool
		agent  string
		told   int
	}{
		"of two sessions":             {[]decide.Question{s.sees(schema.PreToolUse, "x", `{}`), other.sees(schema.PreToolUse, "y", `{}`)}, s.proxied(schema.PreToolUse, "own", `{}`), true, "guess", 0},
		"of another input":            {[]decide.Question{s.sees(schema.PreToolUse, "x", `{"a":1}`)}, s.proxied(schema.PreToolUse, "own", `{}`), true, "guess", 1},
		"of another agent than named": {[]decide.Question{s.sees(schema.PreToolUse, "x", `{}`)}, s.proxied(schema.PreToolUse, "own", `{}`), false, "guess", 1},
		"of another runtime":          {[]decide.Question{clients()["qwen"].sees(schema.PreToolUse, "x", `{}`)}, s.proxied(schema.PreToolUse, "own", `{}`), true, "guess", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{says: injects}
			all := newFlights(b)
			for _, q := range c.hooks {
				(&delivery{all: all}).Ask(t.Context(), q)
			}
			v := (&delivery{all: all, borrow: c.borrow}).Ask(t.Context(), c.proxy).Verdict
			if last := b.asked[len(b.asked)-1]; b.count() != len(c.hooks)+1 || last.AgentID != c.agent || len(v.Injections) != c.told {
				t.Errorf("%d questions, the last one for %s, told %d", b.count(), last.AgentID, len(v.Injections))
			}
			c.proxy.Event.HookType = schema.PostToolUse
			v = (&delivery{all: all, borrow: c.borrow}).Ask(t.Context(), c.proxy).Verdict
			if len(v.Injections) != c.told {
				t.Errorf("after the call it is told %d things", len(v.Injections))
			}
		})
	}
}

// A denied call is not made, so a proxy's call is never that one.
func TestAProxyTakesNoCallThatWasDenied(t *testing.T) {
	b, s := &bench{}, clients()["opencode"]
	all := newFlights(b)
	(&delivery{all: all}).Ask(t.Context(), s.sees(schema.PreToolUse, "one", `{}`))
	if (&delivery{all: all, borrow: true}).Ask(t.Context(), s.proxied(schema.PreToolUse, "own", `{}`)); b.count() != 2 || b.asked[1].AgentID != "guess" {
		t.Errorf("%d questions, the last one for %s", b.count(), b.asked[len(b.asked)-1].AgentID)
	}
}

func TestWhatIsKeptForProxiesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, s := newFlights(&bench{says: injects}), clients()["opencode"]
		for i := range maxSightings + 100 {
			(&delivery{all: all}).Ask(t.Context(), s.sees(schema.PreToolUse, fmt.Sprint(i), `{}`))
			if i%2 == 0 {
				(&delivery{all: all, borrow: true}).Ask(t.Context(), s.proxied(schema.PreToolUse, fmt.Sprint("own", i), `{}`))
			}
		}
		p := &all.pairs
		if n := len(p.open[callOf("opencode", s.hookName)]) + len(p.owned); n != maxSightings || len(p.order) != maxSightings {
			t.Errorf("%d are kept, %d in order", n, len(p.order))
		}
		<-time.After(forProxies)
		(&delivery{all: all}).Ask(t.Context(), s.sees(schema.PreToolUse, "last", `{}`))
		if len(p.order) != 1 || len(p.owned) != 0 || len(p.open) != 1 {
			t.Errorf("%d are kept after their time", len(p.order))
		}
	})
}

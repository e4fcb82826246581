package mcp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/schema"
)

// holding is a fabric that answers about calls before they are made when the
// test lets it.
func holding() (f *fabric, let chan *schema.Verdict) {
	let = make(chan *schema.Verdict)
	return &fabric{judge: func(ctx context.Context, q decide.Question) *schema.Verdict {
		if q.Event.HookType != schema.PreToolUse {
			return nil
		}
		select {
		case v := <-let:
			return v
		case <-ctx.Done():
			return &schema.Verdict{Decision: schema.Deny, Reason: "too late"}
		}
	}}, let
}

const ping = `{"jsonrpc":"2.0","id":50,"method":"ping"}`

func cancelling(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func TestNothingElseWaitsForACallThatIsHeld(t *testing.T) {
	f, let := holding()
	r := newRig(t, f)
	r.greet(hello)
	r.client.send(call("1", ""))
	for range 3 {
		r.client.send(ping)
		r.server.want(ping)
		r.server.send(`{"jsonrpc":"2.0","id":50,"result":{}}`)
		r.client.want(`{"jsonrpc":"2.0","id":50,"result":{}}`)
	}
	let <- nil
	r.server.want(call("1", ""))
}

func TestCallsAreAskedAboutSideBySide(t *testing.T) {
	f, let := holding()
	r := newRig(t, f)
	r.greet(hello)
	const n = 20
	for range n {
		r.client.send(call("7", "")) // the same id, too
	}
	synced := 0
	for range n { // nobody takes a verdict before all have asked: the channel has no room
		let <- nil
		synced++
	}
	for range synced {
		r.server.want(call("7", ""))
	}
	for range n {
		r.server.send(result("7"))
		r.client.want(result("7"))
	}
	if got := len(r.questions()); got != 2*n {
		t.Errorf("%d questions", got)
	}
}

func TestACallThatIsCancelledWhileItIsHeldNeverRuns(t *testing.T) {
	f, let := holding()
	r := newRig(t, f)
	r.greet(hello)
	r.client.send(call(`"a"`, ""))
	r.client.send(call("1", ""))
	r.client.send(cancelling(`"\u0061"`))
	r.client.send(ping)
	r.server.want(ping)
	close(let) // a verdict that comes nevertheless comes too late
	r.server.want(call("1", ""))
	r.client.send(ping) // and nobody has heard of the other one
	r.server.want(ping)
	r.client.send(cancelling("1")) // the server has this one
	r.server.want(cancelling("1"))
	r.server.send(result("1"))
	r.client.want(result("1"))
	asked := r.questions()
	if e := asked[len(asked)-1]; e.HookType != schema.PostToolUse || !e.Mute {
		t.Errorf("who has cancelled a call is told what waits: %+v", e)
	}
	if n := f.told(); n > 0 {
		t.Errorf("%d hand-overs", n)
	}
}

func TestAPersonIsAskedWhereTheClientCan(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		runs   bool
	}{
		"yes":               {`"result":{"action":"accept","content":{}}`, true},
		"no":                {`"result":{"action":"decline"}`, false},
		"not now":           {`"result":{"action":"cancel"}`, false},
		"neither":           {`"result":{}`, false},
		"an error":          {`"error":{"code":-32601,"message":"no such method"}`, false},
		"an unknown answer": {`"result":{"action":"ACCEPT"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, &fabric{judge: on(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?", UpdatedInput: []byte(`{"m":"y"}`)})})
			r.greet(hello)
			r.client.send(call("1", ""))
			asked := r.client.next()
			id, ok := field(asked, `"id":"`)
			if !ok || !strings.Contains(asked, `"method":"elicitation/create"`) || !strings.Contains(asked, "sure?") || !strings.Contains(asked, `{\"m\":\"y\"}`) {
				t.Fatal(asked)
			}
			r.client.send(`{"jsonrpc":"2.0","id":"` + id + `",` + c.answer + `}`)
			r.client.send(`{"jsonrpc":"2.0","id":"` + id + `",` + c.answer + `}`) // twice is not for the server either
			if c.runs {
				r.server.want(strings.Replace(call("1", ""), `{"m":"x"}`, `{"m":"y"}`, 1))
				r.server.send(result("1"))
				r.client.want(result("1"))
			} else if got := r.client.next(); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "sure?") {
				t.Error(got)
			}
			r.client.send(ping)
			r.server.want(ping)
		})
	}
}

// field is what stands behind a mark, up to the next quote.
func field(text, mark string) (string, bool) {
	_, rest, ok := strings.Cut(text, mark)
	value, _, more := strings.Cut(rest, `"`)
	return value, ok && more
}

func TestNobodyWaitsForAPersonForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fabric{judge: on(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?"})},
			func(p *mcp.Pipe) { p.AskTimeout = mcp.DefaultAskTimeout })
		r.greet(hello)
		r.client.send(call("1", ""))
		id, _ := field(r.client.next(), `"id":"`)
		r.client.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"the call has ended","requestId":"` + id + `"}}`)
		if got := r.client.next(); !strings.Contains(got, `"isError":true`) {
			t.Error(got)
		}
		r.client.send(call("2", "")) // and one that is cancelled meanwhile
		id, _ = field(r.client.next(), `"id":"`)
		r.client.send(cancelling("2"))
		if got := r.client.next(); !strings.Contains(got, id) || !strings.Contains(got, "notifications/cancelled") {
			t.Error(got)
		}
		r.client.send(ping)
		r.server.want(ping)
		_ = r.client.w.Close()
		r.server.want("")
		_ = r.server.w.Close()
		<-r.done
	})
}

func TestAPersonIsShownAsMuchOfALongCallAsThereIsRoomFor(t *testing.T) {
	r := newRig(t, &fabric{judge: on(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?"})})
	r.greet(hello)
	r.client.send(strings.Replace(call("1", ""), `"x"`, `"x`+strings.Repeat("ü", 2000)+`"`, 1)) // cut within a letter
	asked := r.client.next()
	if !strings.Contains(asked, "üüü") || !strings.Contains(asked, "… and 2009 bytes more") {
		t.Error(asked)
	}
}

const modern = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"codex-mcp-client","version":"1"}}`

func TestAPersonIsAskedByTheResultWhereServersAskNothing(t *testing.T) {
	f := &fabric{judge: on(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?", UpdatedInput: []byte(`{"m":"y"}`)})}
	for name, c := range map[string]struct {
		before, word string
		change       [2]string
		forward      string // behind the arguments; empty: it does not run
	}{
		"yes":                       {word: "accept", forward: "}"},
		"no":                        {word: "decline"},
		"another call":              {word: "accept", change: [2]string{`"m":"x"`, `"m":"z"`}},
		"another tool":              {word: "accept", change: [2]string{`"echo"`, `"rm"`}},
		"within a round of its own": {before: `,"inputResponses":{"who":{"action":"accept"}},"requestState":"s1"`, word: "accept", forward: `,"inputResponses":{"who":{"action":"accept"}},"requestState":"s1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, f)
			r.client.send(call("1", modern+c.before))
			asked := r.client.next()
			state, ok := field(asked, `"requestState":"`)
			if !ok || !strings.Contains(asked, `"resultType":"input_required"`) || !strings.Contains(asked, `"method":"elicitation/create"`) {
				t.Fatal(asked)
			}
			word := `,"inputResponses":{"hookfabric-approval":{"action":"` + c.word + `","content":{}}},"requestState":"` + state + `"`
			r.client.send(strings.Replace(call("2", modern+word), c.change[0], c.change[1], 1))
			if c.forward != "" {
				r.server.want(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"m":"y"}` + modern + c.forward + `}`)
				r.server.send(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{}}}`)
				r.client.want(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{}}}`)
			} else if got := r.client.next(); !strings.Contains(got, `"resultType":"complete","isError":true`) {
				t.Error(got)
			}
			r.client.send(call("3", modern+word)) // a word counts once
			if got := r.client.next(); !strings.Contains(got, `"isError":true`) {
				t.Error(got)
			}
			r.client.send(ping)
			r.server.want(ping)
		})
	}
}

func TestBatchesAreTakenApart(t *testing.T) {
	f := &fabric{judge: func(_ context.Context, q decide.Question) *schema.Verdict {
		switch {
		case q.Event.HookType == schema.PostToolUse:
			return &schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{{Content: "note"}}}
		case strings.Contains(string(q.Event.ToolInput), "bad"):
			return &schema.Verdict{Decision: schema.Deny, Reason: "no"}
		}
		return nil
	}}
	r := newRig(t, f)
	r.greet(hello)
	bad := strings.Replace(call("2", ""), `"x"`, `"bad"`, 1)
	r.client.send("[" + call("1", "") + " , " + ping + "]")
	r.server.want("[" + call("1", "") + " , " + ping + "]")
	r.server.send(`[` + result("1") + `,{"jsonrpc":"2.0","id":50,"result":{}}]`)
	noted := strings.Replace(result("1"), `}]`, `},{"type":"text","text":"note"}]`, 1)
	r.client.want(`[` + noted + `,{"jsonrpc":"2.0","id":50,"result":{}}]`)
	r.client.send("[" + bad + "," + call("1", "") + "," + ping + "]")
	r.server.want("[" + call("1", "") + "," + ping + "]")
	if got := r.client.next(); !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":2,`) || !strings.Contains(got, "Blocked by policy: no") {
		t.Error(got)
	}
	r.client.send("[" + bad + "]")
	if got := r.client.next(); !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":2,`) {
		t.Error(got)
	}
	r.client.send(ping)
	r.server.want(ping)
}

func TestATasksResultIsLookedAt(t *testing.T) {
	r := newRig(t, &fabric{judge: on(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)})})
	r.greet(hello)
	started := call("1", `,"task":{"ttl":1000}`)
	r.client.send(started)
	r.server.want(started)
	receipt := `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t1","status":"working"}}}`
	r.server.send(receipt)
	r.client.want(receipt)
	fetch := `{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"t1"}}`
	r.client.send(fetch)
	r.server.want(fetch)
	r.server.send(result("2"))
	r.client.want(`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"[redacted]"}]}}`)
}

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

// heldFabric returns a fabric whose verdicts before calls wait for the test.
func heldFabric() (f *fabric, verdicts chan *schema.Verdict) {
	verdicts = make(chan *schema.Verdict)
	return &fabric{verdict: func(ctx context.Context, q decide.Question) *schema.Verdict {
		if q.Event.HookType != schema.PreToolUse {
			return nil
		}
		select {
		case v := <-verdicts:
			return v
		case <-ctx.Done():
			return &schema.Verdict{Decision: schema.Deny, Reason: "too late"}
		}
	}}, verdicts
}

const ping = `{"jsonrpc":"2.0","id":50,"method":"ping"}`

func cancellation(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func TestOtherMessagesOvertakeAHeldCall(t *testing.T) {
	f, verdicts := heldFabric()
	r := newRig(t, f)
	r.handshake(initialize)
	r.client.send(call("1", ""))
	for range 3 {
		r.client.send(ping)
		r.server.want(ping)
		r.server.send(`{"jsonrpc":"2.0","id":50,"result":{}}`)
		r.client.want(`{"jsonrpc":"2.0","id":50,"result":{}}`)
	}
	verdicts <- nil
	r.server.want(call("1", ""))
}

func TestCallsWaitForVerdictsConcurrently(t *testing.T) {
	f, verdicts := heldFabric()
	r := newRig(t, f)
	r.handshake(initialize)
	const n = 20
	for range n {
		r.client.send(call("7", "")) // all with one id
	}
	synced := 0
	for range n { // one call takes one verdict, so all of them wait at the same time
		verdicts <- nil
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

func TestCancelledHeldCallNeverRuns(t *testing.T) {
	f, verdicts := heldFabric()
	r := newRig(t, f)
	r.handshake(initialize)
	r.client.send(call(`"a"`, ""))
	r.client.send(call("1", ""))
	r.client.send(cancellation(`"\u0061"`))
	r.client.send(ping)
	r.server.want(ping)
	close(verdicts) // too late for the cancelled call
	r.server.want(call("1", ""))
	r.client.send(ping) // the server does not get the other one
	r.server.want(ping)
	r.client.send(cancellation("1")) // the server has this call
	r.server.want(cancellation("1"))
	r.server.send(result("1"))
	r.client.want(result("1"))
	asked := r.questions()
	if e := asked[len(asked)-1]; e.HookType != schema.PostToolUse || !e.Mute {
		t.Errorf("a cancelled call delivers items: %+v", e)
	}
	if n := f.deliveries(); n > 0 {
		t.Errorf("%d deliveries", n)
	}
}

func TestPersonApprovesACall(t *testing.T) {
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
			r := newRig(t, &fabric{verdict: verdictOn(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?", UpdatedInput: []byte(`{"m":"y"}`)})})
			r.handshake(initialize)
			r.client.send(call("1", ""))
			asked := r.client.next()
			id, ok := field(asked, `"id":"`)
			if !ok || !strings.Contains(asked, `"method":"elicitation/create"`) || !strings.Contains(asked, "sure?") || !strings.Contains(asked, `{\"m\":\"y\"}`) {
				t.Fatal(asked)
			}
			r.client.send(`{"jsonrpc":"2.0","id":"` + id + `",` + c.answer + `}`)
			r.client.send(`{"jsonrpc":"2.0","id":"` + id + `",` + c.answer + `}`) // the server does not get the second one either
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

// field returns the text between a mark and the next quote.
func field(text, mark string) (string, bool) {
	_, rest, ok := strings.Cut(text, mark)
	value, _, more := strings.Cut(rest, `"`)
	return value, ok && more
}

func TestApprovalTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fabric{verdict: verdictOn(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?"})},
			func(p *mcp.Pipe) { p.AskTimeout = mcp.DefaultAskTimeout })
		r.handshake(initialize)
		r.client.send(call("1", ""))
		id, _ := field(r.client.next(), `"id":"`)
		r.client.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"the call has ended","requestId":"` + id + `"}}`)
		if got := r.client.next(); !strings.Contains(got, `"isError":true`) {
			t.Error(got)
		}
		r.client.send(call("2", "")) // the client cancels this one
		id, _ = field(r.client.next(), `"id":"`)
		r.client.send(cancellation("2"))
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

func TestPersonSeesTheStartOfLongArguments(t *testing.T) {
	r := newRig(t, &fabric{verdict: verdictOn(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?"})})
	r.handshake(initialize)
	r.client.send(strings.Replace(call("1", ""), `"x"`, `"x`+strings.Repeat("ü", 2000)+`"`, 1)) // the limit is within a character
	asked := r.client.next()
	if !strings.Contains(asked, "üüü") || !strings.Contains(asked, "… and 2009 bytes more") {
		t.Error(asked)
	}
}

const modern = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"codex-mcp-client","version":"1"}}`

func TestPersonApprovesACallInItsResult(t *testing.T) {
	f := &fabric{verdict: verdictOn(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?", UpdatedInput: []byte(`{"m":"y"}`)})}
	for name, c := range map[string]struct {
		before, action string
		change         [2]string
		forward        string // after the arguments; empty: the call does not run
	}{
		"yes":                       {action: "accept", forward: "}"},
		"no":                        {action: "decline"},
		"another call":              {action: "accept", change: [2]string{`"m":"x"`, `"m":"z"`}},
		"another tool":              {action: "accept", change: [2]string{`"echo"`, `"rm"`}},
		"within a round of its own": {before: `,"inputResponses":{"who":{"action":"accept"}},"requestState":"s1"`, action: "accept", forward: `,"inputResponses":{"who":{"action":"accept"}},"requestState":"s1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, f)
			r.client.send(call("1", modern+c.before))
			asked := r.client.next()
			state, ok := field(asked, `"requestState":"`)
			if !ok || !strings.Contains(asked, `"resultType":"input_required"`) || !strings.Contains(asked, `"method":"elicitation/create"`) {
				t.Fatal(asked)
			}
			answer := `,"inputResponses":{"hookfabric-approval":{"action":"` + c.action + `","content":{}}},"requestState":"` + state + `"`
			r.client.send(strings.Replace(call("2", modern+answer), c.change[0], c.change[1], 1))
			if c.forward != "" {
				r.server.want(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"m":"y"}` + modern + c.forward + `}`)
				r.server.send(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{}}}`)
				r.client.want(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{}}}`)
			} else if got := r.client.next(); !strings.Contains(got, `"resultType":"complete","isError":true`) {
				t.Error(got)
			}
			r.client.send(call("3", modern+answer)) // an answer counts once
			if got := r.client.next(); !strings.Contains(got, `"isError":true`) {
				t.Error(got)
			}
			r.client.send(ping)
			r.server.want(ping)
		})
	}
}

func TestCallsInAListAreJudgedOneByOne(t *testing.T) {
	f := &fabric{verdict: func(_ context.Context, q decide.Question) *schema.Verdict {
		switch {
		case q.Event.HookType == schema.PostToolUse:
			return &schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{{Content: "note"}}}
		case strings.Contains(string(q.Event.ToolInput), "bad"):
			return &schema.Verdict{Decision: schema.Deny, Reason: "no"}
		}
		return nil
	}}
	r := newRig(t, f)
	r.handshake(initialize)
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

func TestResultOfATaskIsJudged(t *testing.T) {
	r := newRig(t, &fabric{verdict: verdictOn(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)})})
	r.handshake(initialize)
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

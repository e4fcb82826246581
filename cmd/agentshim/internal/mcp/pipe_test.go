package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

func TestOtherMessagesPassUnchanged(t *testing.T) {
	r := newRig(t, &fabric{})
	r.handshake(initialize)
	for _, text := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`  { "id" : "x\u0041" , "method":"tools/list","jsonrpc":"2.0", "params":{} }  `,
		`{"jsonrpc":"2.0","id":7,"method":"x/unknown","params":{"a":[1,2.50,{"b":"ü😀"}]},"more":null}`,
		`{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1e0}}`,
		`[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]`,
		``,
		"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\r",
	} {
		r.client.send(text)
		r.server.want(text)
		r.server.send(text)
		r.client.want(text)
	}
	r.server.send(`this is no JSON at all`)
	r.client.want(`this is no JSON at all`)
	if asked := r.questions(); len(asked) > 0 {
		t.Errorf("the fabric was asked: %+v", asked)
	}
}

func TestAllowedCallPassesUnchanged(t *testing.T) {
	f := &fabric{}
	r := newRig(t, f)
	r.handshake(initialize)
	for _, id := range []string{`1`, `"1"`, `1.5`, `"a\u0062c"`, `-3`, `1`} {
		text := strings.ReplaceAll(call(id, `,"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":4}`), `,"`, ` , "`)
		r.client.send(text)
		r.server.want(text)
		r.server.send(result(id))
		r.client.want(result(id))
	}
	asked := r.questions()
	if len(asked) != 12 {
		t.Fatalf("%d questions", len(asked))
	}
	for i, e := range asked {
		want := schema.Event{
			HookType: schema.PreToolUse, AgentID: "a", SessionID: asked[0].SessionID, Runtime: "claude", Timestamp: e.Timestamp, ToolName: "mcp__srv__echo",
			ToolKind: "mcp", ToolInput: e.ToolInput, ToolUseID: "toolu_1", Cwd: "/work", Mute: true, MidTurn: true,
		}
		if i%2 == 1 {
			want.HookType, want.Mute = schema.PostToolUse, false
		}
		output, args := e.ToolOutput, e.ToolArgs
		e.ToolOutput, e.ToolArgs = nil, nil
		if fmt.Sprint(e) != fmt.Sprint(want) || string(args) != `{"server":"srv","tool":"echo"}` || !strings.Contains(string(e.ToolInput), `"m":"x"`) {
			t.Errorf("question %d: %+v %s", i, e, args)
		}
		if i%2 == 1 && string(output) != `{"content":[{"type":"text","text":"x"}]}` {
			t.Errorf("question %d: output %s", i, output)
		}
	}
}

func TestVerdictsBeforeACall(t *testing.T) {
	in := schema.Injection{Content: "note", Strategy: schema.ToolResult}
	blocked := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Blocked by policy: %s"}],"isError":true}}`
	for name, c := range map[string]struct {
		v       schema.Verdict
		forward string // for the server; empty: the call does not run
		answer  string
	}{
		"a deny becomes a result with the reason": {v: schema.Verdict{Decision: schema.Deny, Reason: "no"}, answer: fmt.Sprintf(blocked, "no")},
		"the end of the run denies":               {v: schema.Verdict{Decision: schema.Continue, Terminate: &schema.Terminate{Reason: "over"}}, answer: fmt.Sprintf(blocked, "over")},
		"a failure denies":                        {v: schema.Verdict{Decision: schema.Fail, Reason: "bad"}, answer: fmt.Sprintf(blocked, "bad")},
		"a deny keeps the injections": {v: schema.Verdict{Decision: schema.Deny, Reason: "no", Injections: []schema.Injection{in}},
			answer: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Blocked by policy: no"},{"type":"text","text":"note"}],"isError":true}}`},
		"the value of a stop is the result": {v: schema.Verdict{Decision: schema.Stop, Value: []byte(`"cached"`)},
			answer: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"cached"}]}}`},
		"the value of a stop can be content": {v: schema.Verdict{Decision: schema.Stop, Value: []byte(`[{"type":"text","text":"cached"}]`)},
			answer: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"cached"}]}}`},
		"an ask without a person is a deny": {v: schema.Verdict{Decision: schema.Ask, Reason: "sure?"},
			answer: fmt.Sprintf(blocked, "a person must approve this call, and this runtime cannot ask one here; ask the operator to allow the call in the policy. Reason: sure?")},
		"a rewrite replaces the arguments": {v: schema.Verdict{Decision: schema.Continue, UpdatedInput: []byte(`{"m":"y"}`)},
			forward: strings.Replace(call("1", ""), `{"m":"x"}`, `{"m":"y"}`, 1), answer: result("1")},
		"a rewrite can be an empty object": {v: schema.Verdict{Decision: schema.Allow, UpdatedInput: []byte(`{}`)},
			forward: strings.Replace(call("1", ""), `{"m":"x"}`, `{}`, 1), answer: result("1")},
		"injections before a call are in its result": {v: schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{in}}, forward: call("1", ""),
			answer: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"},{"type":"text","text":"note"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, &fabric{verdict: verdictOn(schema.PreToolUse, &c.v)})
			r.handshake(initializeMute)
			r.client.send(call("1", ""))
			if c.forward != "" {
				r.server.want(c.forward)
				r.server.send(result("1"))
			}
			r.client.want(c.answer)
			r.client.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
			r.server.want(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		})
	}
}

func TestVerdictsOnAResult(t *testing.T) {
	in := []schema.Injection{{Content: "one", Strategy: schema.ToolResult}, {Content: "two", Strategy: schema.UserMessage}}
	structured := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1},"_meta":{"k":1}}}`
	failed := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"went wrong"}],"isError":true}}`
	fault := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}`
	for name, c := range map[string]struct {
		v      schema.Verdict
		came   string
		answer string
	}{
		"injections are appended in order": {schema.Verdict{Decision: schema.Continue, Injections: in}, result("1"),
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"},{"type":"text","text":"one"},{"type":"text","text":"two"}]}}`},
		"injections are appended to a failed result": {schema.Verdict{Decision: schema.Continue, Injections: in[:1]}, failed,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"went wrong"},{"type":"text","text":"one"}],"isError":true}}`},
		"an injection turns a JSON-RPC error into a result": {schema.Verdict{Decision: schema.Continue, Injections: in[:1]}, fault,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"MCP error -32602: no such tool"},{"type":"text","text":"one"}],"isError":true}}`},
		"without an injection a JSON-RPC error stays": {schema.Verdict{Decision: schema.Continue}, fault, fault},
		"a deny adds its reason": {schema.Verdict{Decision: schema.Deny, Reason: "never again"}, result("1"),
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"},{"type":"text","text":"A hook objects to this call: never again"}]}}`},
		"a text replaces the output": {schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)}, result("1"),
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"[redacted]"}]}}`},
		"a stop replaces a failed result": {schema.Verdict{Decision: schema.Stop, Value: []byte(`"cached"`), UpdatedOutput: []byte(`"earlier"`)}, failed,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"cached"}]}}`},
		"a stop replaces a JSON-RPC error": {schema.Verdict{Decision: schema.Stop, Value: []byte(`"cached"`)}, fault,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"cached"}]}}`},
		"a list of content items replaces the content": {schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`[{"type":"image","data":"AA==","mimeType":"image/png"}]`)}, result("1"),
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}}`},
		"a text removes structured content": {schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)}, structured,
			`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":1},"content":[{"type":"text","text":"[redacted]"}],"isError":true}}`},
		"an object replaces structured content": {schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`{"a":0}`)}, structured,
			`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":1},"content":[{"type":"text","text":"{\"a\":0}"}],"structuredContent":{"a":0}}}`},
		"a whole result replaces both": {schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`{"content":[{"type":"text","text":"y"}],"structuredContent":{"a":2}}`)}, structured,
			`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":1},"content":[{"type":"text","text":"y"}],"structuredContent":{"a":2}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fabric{verdict: func(_ context.Context, q decide.Question) *schema.Verdict {
				if q.Event.HookType == schema.PreToolUse {
					return nil
				}
				return &c.v
			}}
			r := newRig(t, f)
			r.handshake(initialize)
			r.client.send(call("1", ""))
			r.server.want(call("1", ""))
			r.server.send(c.came)
			r.client.want(c.answer)
			want := schema.PostToolUse
			if c.came == failed || c.came == fault {
				want = schema.ToolError
			}
			if e := r.questions()[1]; e.HookType != want || want == schema.ToolError && e.Error != "went wrong" && e.Error != "no such tool" {
				t.Errorf("asked about %+v", e)
			}
		})
	}
}

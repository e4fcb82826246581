package mcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// If a client sends no id for a call, the daemon finds the call by the name that the client's
// own hooks use, and the result by the key of the proxy.
func TestCallWithoutToolUseIDIsFoundByName(t *testing.T) {
	for client, tool := range map[string]string{
		"gemini-cli-mcp-client": "mcp_srv_echo", "qwen-code-mcp-client": "mcp__srv__echo", "github-copilot-developer": "srv-echo",
		"opencode": "srv_echo", "claude-code": "mcp__srv__echo", "another": "mcp__srv__echo",
	} {
		var asked []decide.Question
		f := &fabric{verdict: func(_ context.Context, q decide.Question) *schema.Verdict {
			asked = append(asked, q)
			return nil
		}}
		r := newRig(t, f)
		r.handshake(strings.Replace(initializeMute, "gemini-cli-mcp-client", client, 1))
		for range 2 {
			r.client.send(call("1", ""))
			r.server.want(call("1", ""))
			r.server.send(result("1"))
			r.client.want(result("1"))
		}
		if len(asked) != 4 {
			t.Fatalf("%s: %d questions", client, len(asked))
		}
		for i, q := range asked {
			phase := []string{"pre/", "post/"}[i%2]
			if q.Apart != tool || q.Pair == "" || q.Key != phase+q.Pair || !q.ByID {
				t.Errorf("%s: question %d: %+v", client, i, q)
			}
		}
		if asked[0].Pair != asked[1].Pair || asked[0].Pair == asked[2].Pair {
			t.Errorf("%s: two calls are %q and %q", client, asked[0].Pair, asked[2].Pair)
		}
	}
}

func TestCallWithToolUseIDIsFoundByID(t *testing.T) {
	var asked decide.Question
	r := newRig(t, &fabric{verdict: func(_ context.Context, q decide.Question) *schema.Verdict {
		asked = q
		return nil
	}})
	r.handshake(initialize)
	r.client.send(call("1", `,"_meta":{"claudecode/toolUseId":"toolu_1"}`))
	r.server.next()
	if asked.Apart != "" || asked.Key != "pre/toolu_1" || asked.Pair != "toolu_1" {
		t.Errorf("%+v", asked)
	}
}

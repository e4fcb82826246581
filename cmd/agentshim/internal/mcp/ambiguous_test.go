package mcp_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/schema"
)

// The proxy refuses a message that readers could read differently: otherwise the policy could judge
// another call than the server runs.
func TestAmbiguousMessageIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"two methods":                  `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo"}}`,
		"a method in other letters":    `{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"echo"}}`,
		"an escaped method twice":      `{"jsonrpc":"2.0","id":1,"method":"tools\u002fcall","METHOD":"x","params":{"name":"echo"}}`,
		"two names":                    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"rm"}}`,
		"two params":                   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"params":{"name":"rm"}}`,
		"two arguments":                `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"Arguments":{"a":1}}}`,
		"one argument twice":           `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":{"b":1,"b":2}}}}`,
		"no tool":                      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`,
		"arguments in a list":          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[1]}}`,
		"a value that is not a number": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":NaN}}}`,
		"half a message":               `{"jsonrpc":"2.0","id":1,"method":"tools/call"`,
		"two messages":                 `{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`,
		"a line in the line":           "{\"jsonrpc\":\"2.0\",\"x\":\r" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}` + "\r}",
	} {
		t.Run(name, func(t *testing.T) {
			f := &fabric{}
			r := newRig(t, f)
			r.client.send(text)
			if got := r.client.next(); !strings.Contains(got, `"isError":true`) && !strings.Contains(got, `"code":-32700`) {
				t.Error(got)
			}
			r.client.send(ping)
			r.server.want(ping)
			if n := len(f.questions()); n > 0 {
				t.Errorf("%d questions", n)
			}
		})
	}
}

// A denied notification gets no answer.
func TestNotificationWithACallIsJudged(t *testing.T) {
	f := &fabric{verdict: verdictOn(schema.PreToolUse, &schema.Verdict{Decision: schema.Deny, Reason: "no"})}
	r := newRig(t, f)
	r.client.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`)
	r.client.send(ping)
	r.server.want(ping)
}

func TestLongMessages(t *testing.T) {
	f := &fabric{}
	r := newRig(t, f)
	long := strings.Replace(call("1", ""), `"x"`, `"`+strings.Repeat("x", 8<<20)+`"`, 1)
	r.client.send(long)
	if got := r.server.next(); got != long {
		t.Errorf("the server got %d bytes of %d", len(got), len(long))
	}
	over := strings.Repeat("y", mcp.MaxMessage)
	r.server.send(`{"result":{"content":[{"type":"text","text":"` + over + `"}]},"jsonrpc":"2.0","id":1}`)
	if got := r.client.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":`) || !strings.Contains(got, "64 MiB") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("%.300s", got)
	}
	r.client.send(`{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":"` + over + `"}}`)
	if got := r.client.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"z","error":`) {
		t.Errorf("%.300s", got)
	}
	r.client.send(ping)
	r.server.want(ping)
	if text := r.stderr.String(); strings.Count(text, "64 MiB") != 2 {
		t.Error(text)
	}
}

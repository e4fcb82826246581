package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// evasions returns spellings of an answer to the call 1 that some client accepts.
func evasions() map[string]string {
	const content = `{"content":[{"type":"text","text":"SECRET"}]`
	return map[string]string{
		"the usual form":                    `{"jsonrpc":"2.0","id":1,"result":` + content + `}}`,
		"the id as a text":                  `{"jsonrpc":"2.0","id":"1","result":` + content + `}}`,
		"the id as another text":            `{"jsonrpc":"2.0","id":" 0x1","result":` + content + `}}`,
		"the id as a fraction":              `{"jsonrpc":"2.0","id":"1.0","result":` + content + `}}`,
		"with an error of null":             `{"jsonrpc":"2.0","id":1,"result":` + content + `},"error":null}`,
		"with an error":                     `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"},"result":` + content + `}}`,
		"with a method":                     `{"jsonrpc":"2.0","id":1,"method":"x","result":` + content + `}}`,
		"with a method of null":             `{"jsonrpc":"2.0","id":1,"method":null,"result":` + content + `}}`,
		"as a request for input":            `{"jsonrpc":"2.0","id":1,"result":` + content + `,"resultType":"input_required"}}`,
		"as an unknown type":                `{"jsonrpc":"2.0","id":1,"result":` + content + `,"resultType":"x"}}`,
		"as a task":                         `{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"a":"SECRET"},"task":{"taskId":"t"}}}`,
		"two ids":                           `{"jsonrpc":"2.0","id":1,"id":2,"result":` + content + `}}`,
		"an id in other letters":            `{"jsonrpc":"2.0","ID":1,"result":` + content + `}}`,
		"a result in other letters":         `{"jsonrpc":"2.0","id":1,"result":{"content":[]},"Result":` + content + `}}`,
		"content twice":                     `{"jsonrpc":"2.0","id":1,"result":` + content + `,"content":[]}}`,
		"a number that some readers accept": `{"jsonrpc":"2.0","id":1,"result":` + content + `,"x":NaN}}`,
		"nested very deeply":                `{"jsonrpc":"2.0","id":1,"result":` + content + `,"x":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}}`,
		"a carriage return between members": "{\"jsonrpc\":\"2.0\",\r\"id\":1,\"result\":" + content + `}}`,
		"one of several":                    `[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1,"result":` + content + `,"x":NaN}}]`,
	}
}

// No spelling of a result gets it past the hooks.
func TestServerCannotHideAResult(t *testing.T) {
	for name, answer := range evasions() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, &fabric{verdict: verdictOn(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)})})
			r.handshake(initialize)
			r.client.send(call("1", ""))
			r.server.want(call("1", ""))
			r.server.send(answer)
			if name != "one of several" { // the proxy cannot know which call it answers
				if got := r.client.next(); strings.Contains(got, "SECRET") || !strings.Contains(got, "[redacted]") && !strings.Contains(got, "agentshim dropped the server's answer") {
					t.Errorf("the client gets %.600s", got)
				}
			}
			r.server.send(ping) // the connection goes on
			r.client.want(ping)
		})
	}
}

// Some readers end a line at a carriage return.
func TestServerCannotHideALineInALine(t *testing.T) {
	r := newRig(t, &fabric{})
	r.handshake(initialize)
	r.server.send("the server speaks\r" + result("1"))
	r.server.send("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":\r" + result("1") + "\r}")
	r.client.want(`{"jsonrpc":"2.0","method":"x","params":` + result("1") + `}`)
	r.server.send("the server\rspeaks")
	r.client.want("the server\rspeaks")
}

// The same holds over HTTP, for all media types.
func TestServerCannotHideAResultOverHTTP(t *testing.T) {
	for name, answer := range evasions() {
		for _, kind := range []string{"application/json", "x-application/json", "text/event-stream", "text/plain, text/event-stream; q=\""} {
			t.Run(name+", "+kind, func(t *testing.T) {
				body := answer
				if strings.Contains(kind, "stream") {
					body = "id: 1\ndata: " + answer + "\n\n"
				}
				checkHidden(t, kind, body)
			})
		}
	}
	good := evasions()["the usual form"]
	for name, body := range map[string]string{
		"lines that end otherwise": "data: " + good + "\r\r",
		"a comment in two lines":   ": x\rdata: " + good + "\r\r\n\n",
		"a line separator":         ": x\u2028data: " + good + "\u2028\n\n",
		"a vertical tab":           "x: \x0bdata: " + good + "\x0b\n\n",
		"an event of another kind": "event: x\u0085data: " + good + "\u0085\n\n",
		"a paragraph separator":    "data: x\u2029data: " + good + "\u2029\n\n",
	} {
		t.Run(name, func(t *testing.T) { checkHidden(t, "text/event-stream", body) })
	}
}

func checkHidden(t *testing.T, kind, body string) {
	t.Helper()
	f := &fabric{verdict: verdictOn(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)})}
	base := startRelay(t, f, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	})
	_, got := request(t, "POST", base, call("1", ""))
	if strings.Contains(got, "SECRET") {
		t.Errorf("the client gets %.600q", got)
	}
}

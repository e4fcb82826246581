package mcp_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/schema"
)

// overHTTP starts a Pipe with an HTTPClient to a server. The Pipe ends with the client's output.
func overHTTP(t *testing.T, f *fabric, handler http.HandlerFunc) (client *peer, done chan error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toProxy := io.Pipe()
	fromProxy, toClient := io.Pipe()
	client, done = &peer{t, toProxy, bufio.NewReader(fromProxy)}, make(chan error, 1)
	go func() {
		c := mcp.HTTPClient{Target: target, Stderr: &stderr{}}
		done <- c.Run(t.Context(), mcp.Pipe{Guard: &mcp.Guard{Asker: f, Server: "srv", Stderr: &stderr{}}, FromClient: fromClient, ToClient: toClient})
	}()
	t.Cleanup(func() { _ = toProxy.Close() })
	return client, done
}

// The client and the server get each other's bytes: ids of all kinds, members that the protocol does
// not know, and the messages that the server sends without a request.
func TestHTTPClientPassesMessagesUnchanged(t *testing.T) {
	var got string
	var answer string
	const fromServer = `{"jsonrpc":"2.0","id":1.50,"method":"elicitation/create","params":{"_meta":{"a":1e0}},"more":null}`
	listening := make(chan struct{})
	client, _ := overHTTP(t, &fabric{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		switch {
		case r.Method == http.MethodGet:
			<-listening
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+fromServer+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case answer == "":
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
	})
	for _, c := range []struct{ send, answer string }{
		{initialize, initializeResult},
		{`{"jsonrpc":"2.0","id":1.50,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.5,"result":{ }}`},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":null,"more":1e0}`},
		{` { "id":"x\u0041","method":"tools/list", "jsonrpc":"2.0","more":[2.50] } `, `{"jsonrpc":"2.0","id":"xA","error":{"code":1,"message":"m","hint":"h"}}`},
		{call("1", `,"_meta":{"progressToken":1e0}`), `{"jsonrpc":"2.0","id":1,"result":{"content":[],"new":1}}`},
		{`[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]`, `[{"jsonrpc":"2.0","id":8,"result":{}}]`},
	} {
		answer = c.answer
		client.send(c.send)
		client.want(c.answer)
		if got != c.send {
			t.Errorf("the server got  %s\nthe client sent %s", got, c.send)
		}
	}
	answer = ""
	client.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	close(listening)
	client.want(fromServer)
}

// The HTTPClient keeps the session and the protocol version, resumes broken streams, and reports
// requests without an answer.
func TestHTTPClientFollowsTheProtocol(t *testing.T) {
	f := &fabric{verdict: verdictOn(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{{Content: "note"}}})}
	broken, deleted := false, make(chan string, 1)
	c, done := overHTTP(t, f, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, session := string(body), r.Header.Get("Mcp-Session-Id")
		switch {
		case r.Method == http.MethodDelete:
			deleted <- session
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "7":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 8\ndata: "+result("2")+"\n\n")
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(text, "initialize\""):
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "s1")
			_, _ = io.WriteString(w, strings.Replace(initializeResult, `,"result"`, ",\n\"result\"", 1))
		case session != "s1" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25":
			w.WriteHeader(http.StatusBadRequest)
		case strings.Contains(text, `"id":2`): // the stream breaks
			broken = true
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 7\nretry: 1\ndata: \n\n")
		case strings.Contains(text, `"id":1`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: "+result("1")+"\n\n")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	c.send(initialize)
	c.want(initializeResult)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(call("1", ""))
	c.want(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	c.want(strings.Replace(result("1"), `}]`, `},{"type":"text","text":"note"}]`, 1))
	c.send(call("2", ""))
	c.want(strings.Replace(result("2"), `}]`, `},{"type":"text","text":"note"}]`, 1))
	c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if got := c.next(); !strings.Contains(got, `"id":"p","error"`) || !broken {
		t.Errorf("the client gets %s for a request without an answer", got)
	}
	if err := c.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if session := <-deleted; session != "s1" {
		t.Errorf("the session %q was ended", session)
	}
}

func TestHeadersFileMustBePrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o644: true, 0o602: true} {
		if err := os.WriteFile(file, []byte("Authorization: Bearer s\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		h, err := mcp.ReadHeaders(file)
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), file)):
			t.Errorf("mode %v: %v", mode, err)
		case !refused && (err != nil || h.Get("Authorization") != "Bearer s"):
			t.Errorf("mode %v: %v, %v", mode, h, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

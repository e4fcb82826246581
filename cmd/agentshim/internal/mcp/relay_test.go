package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/schema"
)

// relayed starts a relay before a server of the test's.
func relayed(t *testing.T, f *fabric, server http.HandlerFunc) (base string) {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	x := &mcp.Relay{Guard: &mcp.Guard{Asker: f, Agent: "a", Server: "srv", Stderr: &said{}}, Target: target}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	return front.URL
}

// request makes one, and returns the answer and its body.
func request(t *testing.T, method, at, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

func TestARelayPassesOnWhatIsNoCall(t *testing.T) {
	var got string
	base := relayed(t, &fabric{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + r.Header.Get("Mcp-Session-Id") + r.Header.Get("Last-Event-ID") + r.Header.Get("Mcp-Protocol-Version") + " " + string(body)
		w.Header().Set("Mcp-Session-Id", "s1")
		w.Header().Set("X-Odd", "yes")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, " {\"a\": 1 }\n")
	})
	for _, c := range []struct{ method, at, body string }{
		{"POST", "/mcp?x=1", " { \"jsonrpc\":\"2.0\",\n \"method\" : \"notifications/x\" } "},
		{"DELETE", "/mcp", ""},
		{"GET", "/.well-known/oauth-protected-resource", ""},
	} {
		res, body := request(t, c.method, base+c.at, c.body, "Mcp-Session-Id", "s0", "Last-Event-ID", "7", "Mcp-Protocol-Version", "2025-11-25")
		if want := c.method + " " + c.at + " s072025-11-25 " + c.body; got != want {
			t.Errorf("the server got %q, not %q", got, want)
		}
		if body != " {\"a\": 1 }\n" || res.StatusCode != http.StatusAccepted || res.Header.Get("X-Odd") != "yes" || res.Header.Get("Mcp-Session-Id") != "s1" {
			t.Errorf("the client got %d %q %v", res.StatusCode, body, res.Header)
		}
	}
	for _, header := range []string{"Host", "Origin"} {
		value := "evil.example"
		if header == "Origin" {
			value = "https://evil.example"
		}
		got = ""
		if res, _ := request(t, "POST", base+"/mcp", `{}`, header, value); res.StatusCode != http.StatusForbidden || got != "" {
			t.Errorf("%s %s: %d, and the server got %q", header, value, res.StatusCode, got)
		}
	}
	for _, charset := range []string{"utf-7", `"UTF-16LE"`, "utf-8;charset=utf-7", "x"} { // in which it could be another call
		if res, _ := request(t, "POST", base+"/mcp", `{}`, "Content-Type", "application/json; charset="+charset); res.StatusCode != http.StatusUnsupportedMediaType || got != "" {
			t.Errorf("charset %s: %d, and the server got %q", charset, res.StatusCode, got)
		}
	}
	if res, _ := request(t, "POST", base+"/mcp", `{}`, "Content-Type", `Application/JSON; Charset="UTF-8"`); res.StatusCode != http.StatusAccepted || got == "" {
		t.Errorf("UTF-8: %d, and the server got %q", res.StatusCode, got)
	}
	got = ""
	if res, _ := request(t, "POST", base+"/mcp", `{"method":"tools/call"`); res.StatusCode != http.StatusBadRequest || got != "" {
		t.Errorf("half a message: %d, and the server got %q", res.StatusCode, got)
	}
}

// A server's secret goes to the server that it is for, and to nothing beside it.
func TestHeadersAreForTheTargetOnly(t *testing.T) {
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got[r.URL.Path] = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	x := &mcp.Relay{Guard: &mcp.Guard{Asker: &fabric{}, Stderr: &said{}}, Target: target, Headers: http.Header{"Authorization": {"Bearer s"}}}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	for _, path := range []string{"/mcp", "/admin", "/mcp/../admin/x"} {
		request(t, "POST", front.URL+path, ping)
	}
	if got["/mcp"] != "Bearer s" || got["/admin"] != "" || got["/mcp/../admin/x"]+got["/admin/x"] != "" || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestARelayHasCallsJudged(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			f := &fabric{judge: func(_ context.Context, q decide.Question) *schema.Verdict {
				switch in := string(q.Event.ToolInput); {
				case q.Event.HookType != schema.PreToolUse:
					return &schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{{Content: "note"}}}
				case strings.Contains(in, "bad"):
					return &schema.Verdict{Decision: schema.Deny, Reason: "no"}
				case strings.Contains(in, "other"):
					return &schema.Verdict{Decision: schema.Continue, UpdatedInput: []byte(`{"m":"y"}`)}
				}
				return nil
			}}
			var got []string
			base := relayed(t, f, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = append(got, string(body))
				if !stream {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, result("1"))
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "id: 1\nretry: 10\ndata: \n\n: a comment\n\nevent: message\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
				_, _ = io.WriteString(w, "event: message\nid: 3\ndata: "+result("1")+"\n\n")
			})
			noted := strings.Replace(result("1"), `}]`, `},{"type":"text","text":"note"}]`, 1)
			if stream {
				noted = "id: 1\nretry: 10\ndata: \n\n: a comment\n\nevent: message\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\nevent: message\nid: 3\ndata: " + noted + "\n\n"
			}
			if _, body := request(t, "POST", base, call("1", "")); body != noted {
				t.Errorf("got %q\nwant %q", body, noted)
			}
			_, body := request(t, "POST", base, strings.Replace(call("1", ""), `"x"`, `"bad"`, 1))
			if !strings.Contains(body, "Blocked by policy: no") || !strings.Contains(body, `"isError":true`) {
				t.Error(body)
			}
			request(t, "POST", base, strings.Replace(call("1", ""), `"x"`, `"other"`, 1))
			_, body = request(t, "POST", base, strings.Replace(call("1", ""), `"x"`, `"other"`, 1), "Mcp-Param-M", "other")
			if !strings.Contains(body, `"isError":true`) {
				t.Errorf("a header says what a hook has changed: %s", body)
			}
			want := []string{call("1", ""), strings.Replace(call("1", ""), `"x"`, `"y"`, 1)}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("the server got %q", got)
			}
			if n := f.told(); n != 2 {
				t.Errorf("%d hand-overs", n)
			}
		})
	}
}

// A client whose stream broke asks for what it missed, and gets what hooks made
// of it, however often it asks.
func TestWhatIsAskedForAgainIsTheSame(t *testing.T) {
	f := &fabric{judge: on(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)})}
	base := relayed(t, f, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1\ndata: \n\n")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, "id: 2\ndata: "+result("1")+"\n\n")
		}
	})
	request(t, "POST", base, call("1", ""), "Mcp-Session-Id", "s1")
	for range 3 {
		if _, body := request(t, "GET", base, "", "Mcp-Session-Id", "s1", "Last-Event-ID", "1"); !strings.Contains(body, "[redacted]") || strings.Contains(body, `"text":"x"`) {
			t.Error(body)
		}
	}
	if n := len(f.questions()); n != 2 {
		t.Errorf("%d questions", n)
	}
}

func TestARelayAsksAPersonOnTheAnswersStream(t *testing.T) {
	for _, word := range []string{"accept", "decline"} {
		t.Run(word, func(t *testing.T) {
			f := &fabric{judge: on(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?"})}
			calls := 0
			base := relayed(t, f, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(string(body), "initialize") {
					w.Header().Set("Mcp-Session-Id", "s1")
					_, _ = io.WriteString(w, hi)
					return
				}
				calls++
				_, _ = io.WriteString(w, result("1"))
			})
			if res, body := request(t, "POST", base, hello); body != hi || res.Header.Get("Mcp-Session-Id") != "s1" {
				t.Fatal(body)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base, strings.NewReader(call("1", "")))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Mcp-Session-Id", "s1")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			in := bufio.NewReader(res.Body)
			var asked string
			for !strings.Contains(asked, "elicitation/create") {
				if asked, err = in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			id, _ := field(asked, `"id":"`)
			if res, _ := request(t, "POST", base, `{"jsonrpc":"2.0","id":"`+id+`","result":{"action":"`+word+`"}}`, "Mcp-Session-Id", "s1"); res.StatusCode != http.StatusAccepted {
				t.Errorf("its answer is answered %d", res.StatusCode)
			}
			rest, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			if runs := word == "accept"; runs != strings.Contains(string(rest), `"text":"x"`) || runs != (calls == 1) {
				t.Errorf("%d calls, and the client got %s", calls, rest)
			}
		})
	}
}

// The face of a server that speaks over HTTP is as one that speaks in lines.
func TestAFaceIsAServerThatSpeaksInLines(t *testing.T) {
	f := &fabric{judge: on(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{{Content: "note"}}})}
	broken, deleted := false, make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			_, _ = io.WriteString(w, strings.Replace(hi, `,"result"`, ",\n\"result\"", 1))
		case session != "s1" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25":
			w.WriteHeader(http.StatusBadRequest)
		case strings.Contains(text, `"id":2`): // its stream breaks
			broken = true
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 7\nretry: 1\ndata: \n\n")
		case strings.Contains(text, `"id":1`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: "+result("1")+"\n\n")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toProxy := io.Pipe()
	fromProxy, toClient := io.Pipe()
	c := &line{t, toProxy, bufio.NewReader(fromProxy)}
	done := make(chan error, 1)
	go func() {
		client := mcp.HTTPClient{Target: target, Stderr: &said{}}
		done <- client.Run(t.Context(), mcp.Pipe{Guard: &mcp.Guard{Asker: f, Server: "srv", Stderr: &said{}}, FromClient: fromClient, ToClient: toClient})
	}()
	c.send(hello)
	c.want(hi)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(call("1", ""))
	c.want(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	c.want(strings.Replace(result("1"), `}]`, `},{"type":"text","text":"note"}]`, 1))
	c.send(call("2", ""))
	c.want(strings.Replace(result("2"), `}]`, `},{"type":"text","text":"note"}]`, 1))
	c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if got := c.next(); !strings.Contains(got, `"id":"p","error"`) || !broken {
		t.Errorf("what the server does not answer is answered %s", got)
	}
	if err := toProxy.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if session := <-deleted; session != "s1" {
		t.Errorf("the session %q was ended", session)
	}
}

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

// startRelay starts a relay in front of a server.
func startRelay(t *testing.T, f *fabric, server http.HandlerFunc) (base string) {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	x := &mcp.Relay{Guard: &mcp.Guard{Asker: f, Agent: "a", Server: "srv", Stderr: &stderr{}}, Target: target}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	return front.URL
}

// request makes a request, and returns the response and its body.
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

func TestRelayPassesOtherMessagesUnchanged(t *testing.T) {
	var got string
	base := startRelay(t, &fabric{}, func(w http.ResponseWriter, r *http.Request) {
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
	for _, charset := range []string{"utf-7", `"UTF-16LE"`, "utf-8;charset=utf-7", "x"} { // in this charset it could be another call
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

// Other paths of the server's host do not get the headers, which can be secrets.
func TestHeadersAreForTheTargetOnly(t *testing.T) {
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got[r.URL.Path] = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	x := &mcp.Relay{Guard: &mcp.Guard{Asker: &fabric{}, Stderr: &stderr{}}, Target: target, Headers: http.Header{"Authorization": {"Bearer s"}}}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	for _, path := range []string{"/mcp", "/admin", "/mcp/../admin/x"} {
		request(t, "POST", front.URL+path, ping)
	}
	if got["/mcp"] != "Bearer s" || got["/admin"] != "" || got["/mcp/../admin/x"]+got["/admin/x"] != "" || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestRelayAsksAboutCalls(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			f := &fabric{verdict: func(_ context.Context, q decide.Question) *schema.Verdict {
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
			base := startRelay(t, f, func(w http.ResponseWriter, r *http.Request) {
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
				t.Errorf("a header repeats what a hook changed: %s", body)
			}
			want := []string{call("1", ""), strings.Replace(call("1", ""), `"x"`, `"y"`, 1)}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("the server got %q", got)
			}
			if n := f.deliveries(); n != 2 {
				t.Errorf("%d deliveries", n)
			}
		})
	}
}

// A client that resumes a stream gets the answer of the hooks, each time.
func TestResumedStreamHasTheSameAnswer(t *testing.T) {
	f := &fabric{verdict: verdictOn(schema.PostToolUse, &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)})}
	base := startRelay(t, f, func(w http.ResponseWriter, r *http.Request) {
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

func TestRelayAsksAPersonOnTheStreamOfTheCall(t *testing.T) {
	for _, word := range []string{"accept", "decline"} {
		t.Run(word, func(t *testing.T) {
			f := &fabric{verdict: verdictOn(schema.PreToolUse, &schema.Verdict{Decision: schema.Ask, Reason: "sure?"})}
			calls := 0
			base := startRelay(t, f, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(string(body), "initialize") {
					w.Header().Set("Mcp-Session-Id", "s1")
					_, _ = io.WriteString(w, initializeResult)
					return
				}
				calls++
				_, _ = io.WriteString(w, result("1"))
			})
			if res, body := request(t, "POST", base, initialize); body != initializeResult || res.Header.Get("Mcp-Session-Id") != "s1" {
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
				t.Errorf("the status of the answer is %d", res.StatusCode)
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

// The relay serves only clients with its token, and does not send the token to the server.
func TestRelayRequiresItsToken(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), " ", r.Header.Get("Authorization"), r.Header.Get(mcp.TokenHeader)))
	}))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	const token = "THE-TOKEN"
	x := &mcp.Relay{Guard: &mcp.Guard{Asker: &fabric{}, Stderr: &stderr{}}, Target: target, Token: token, Headers: http.Header{"Authorization": {"Bearer s"}}}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	for name, c := range map[string]struct {
		method, path, header string
		want                 string // what the server gets; empty: nothing
	}{
		"no token":                      {"POST", "/mcp", "", ""},
		"another token in the header":   {"POST", "/mcp", "THE-TOKEN2", ""},
		"another token in the path":     {"POST", "/THE-TOKEN2/mcp", "", ""},
		"a part of the token":           {"POST", "/THE/mcp", "", ""},
		"the token in the path":         {"POST", "/THE-TOKEN/mcp", "", "POST /mcp Bearer s"},
		"the token in the header":       {"POST", "/mcp", token, "POST /mcp Bearer s"},
		"the token and another path":    {"POST", "/THE-TOKEN/admin%2Fx", "", "POST /admin%2Fx "},
		"the token somewhere else":      {"POST", "/mcp/THE-TOKEN", "", ""},
		"a stream without the token":    {"GET", "/mcp", "", ""},
		"a stream with the token":       {"GET", "/THE-TOKEN/mcp", "", "GET /mcp Bearer s"},
		"what servers tell everyone":    {"GET", "/.well-known/oauth-authorization-server", "", "GET /.well-known/oauth-authorization-server "},
		"that of a path with the token": {"GET", "/.well-known/oauth-protected-resource/THE-TOKEN/mcp", "", "GET /.well-known/oauth-protected-resource/mcp "},
		"a change of the metadata":      {"POST", "/.well-known/x", "", ""},
		"a way out of the metadata":     {"GET", "/.well-known/../mcp", "", ""},
		"an encoded way out of it":      {"GET", "/.well-known/%2e%2e/mcp", "", ""},
		"a token in a query":            {"POST", "/mcp?token=THE-TOKEN", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			var headers []string
			if c.header != "" {
				headers = []string{mcp.TokenHeader, c.header}
			}
			res, body := request(t, c.method, front.URL+c.path, map[string]string{"POST": ping}[c.method], headers...)
			if strings.Join(got, ", ") != c.want {
				t.Errorf("the server got %q", got)
			}
			if c.want == "" && (res.StatusCode != http.StatusForbidden || !strings.Contains(body, mcp.TokenHeader)) {
				t.Errorf("%d %s", res.StatusCode, body)
			}
		})
	}
}

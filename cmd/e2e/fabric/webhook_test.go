package fabric_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfabric/hookfabric/schema"
)

// site is a server of hooks, whose paths say what it answers.
func site(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	for path, text := range map[string]string{
		"/allows":  `{"decision":"allow"}`,
		"/empty":   `{}`,
		"/denies":  `{"decision":"deny","reason":"not over http"}`,
		"/lists":   `{"updated_input":{"command":"ls","all":true}}`,
		"/updates": `{"inject":{"content":"[UPDATE] from a server","strategy":"tool_result"}}`,
		"/reminds": `{"inject":{"content":"SYSTEM REMINDER: from a server","strategy":"user_message"}}`,
		"/junk":    `allow, I think`,
		"/unknown": `{"decision":"Allow"}`,
		"/nothing": ``,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answer(w, text) })
	}
	for path, code := range map[string]int{"/422": http.StatusUnprocessableEntity, "/500": http.StatusInternalServerError, "/503": http.StatusServiceUnavailable} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "the policy says no", code) })
	}
	mux.HandleFunc("/204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/422-json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"decision":"allow","reason":"blocked, in JSON"}`)
	})
	mux.Handle("/moved", http.RedirectHandler("/allows", http.StatusTemporaryRedirect))
	mux.HandleFunc("/breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/lengthens", lengthen)
	mux.HandleFunc("/hangs", hang)
	return serveHTTP(t, mux)
}

// serveHTTP serves h on loopback until the test ends.
func serveHTTP(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

// lengthen is a server that rewrites the tool's command.
func lengthen(w http.ResponseWriter, r *http.Request) {
	var e schema.Event
	var text []byte
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = schema.Unmarshal(body, &e)
	}
	if err == nil {
		var longer schema.Result
		longer, err = lengthened(&e, " http")
		text, _ = schema.Marshal(longer)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, string(text))
}

// hang answers when the client has given up.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // without this the end of the connection goes unnoticed
	<-r.Context().Done()
}

// asking is s with the server's URL for each $.
func asking(url, s string) string { return strings.ReplaceAll(s, "$", url) }

func TestScenariosOfServers(t *testing.T) {
	t.Parallel()
	url := site(t)
	servers := []asked{
		{"Wildcard matching", `PreToolUse: [{matcher: "*", type: http, handler: $/denies}]`, "Bash mcp__notes__add", []string{"error not over http", "error not over http"}},
		{"Specific tool matching", `PreToolUse: [{matcher: "Write|Edit", type: http, handler: $/denies}]`, "Write Edit Bash",
			[]string{"error not over http", "error not over http", "Bash ran with " + bash, `result "done"`}},
		{"Hook denies tool execution", `PreToolUse: [{type: http, handler: $/denies}]`, "Bash", []string{"error not over http"}},
		{"Hook denies tool execution, with the status 422", `PreToolUse: [{type: http, handler: $/422}]`, "Bash", []string{"error the policy says no"}},
		{"Hook denies tool execution, with the status 422 and any JSON", `PreToolUse: [{type: http, handler: $/422-json}]`, "Bash", []string{"error blocked, in JSON"}},
		{"Hook modifies tool input", `PreToolUse: [{type: http, handler: $/lists}]`, "Bash", listedAll},
		{"Hook allows execution", `PreToolUse: [{type: http, handler: $/allows, fail_closed: true}]`, "Bash", passed},
		{"Hook allows execution, with an empty result", `PreToolUse: [{type: http, handler: $/empty, fail_closed: true}, {type: http, handler: $/204, fail_closed: true}]`, "Bash", passed},
		{"Hook injects into tool result", `PostToolUse: [{type: http, handler: $/updates}]`, "Bash", []string{"Bash ran with " + bash, `result "done" + [UPDATE] from a server`}},
		{"Hook injects as user message", `PostToolUse: [{type: http, handler: $/reminds}]`, "Bash",
			[]string{"Bash ran with " + bash, `result "done"`, "user SYSTEM REMINDER: from a server"}},
		{"a server that refuses after the tool ran gives feedback", `PostToolUse: [{type: http, handler: $/422}]`, "Bash",
			[]string{"Bash ran with " + bash, `result "done"`, "feedback the policy says no"}},
	}
	for i := range servers {
		servers[i].hooks = asking(url, servers[i].hooks)
	}
	askAll(t, servers)
}

func TestScenariosOfServersThatFail(t *testing.T) {
	t.Parallel()
	url := site(t)
	fails := []failure{
		{"no server listens", `type: http, timeout: 60, handler: "http://127.0.0.1:1/hook"`, schema.Errored, "refused"},
		{"the status 500", `type: http, timeout: 60, handler: $/500`, schema.Errored, "the status 500 Internal Server Error: the policy says no"},
		{"the status 503", `type: http, timeout: 60, handler: $/503`, schema.Errored, "the status 503 Service Unavailable"},
		{"External hook returns invalid JSON", `type: http, timeout: 60, handler: $/junk`, schema.Errored, "JSON"},
		{"an unknown decision is an error, not an allow", `type: http, timeout: 60, handler: $/unknown`, schema.Errored, `decided "Allow"`},
		{"nothing where an answer is due", `type: http, timeout: 60, handler: $/nothing`, schema.Errored, "the status 200 OK and an empty body"},
		{"a server elsewhere is not asked", `type: http, timeout: 60, handler: $/moved`, schema.Errored, "the worker follows no redirections"},
		{"a server that breaks off", `type: http, timeout: 60, handler: $/breaks`, schema.Errored, "could not be asked: "},
		{"Timeout behavior", `type: http, timeout: 0.2, handler: $/hangs`, schema.Deadline, "did not answer within its timeout of 200ms"},
	}
	for i := range fails {
		fails[i].hook = asking(url, fails[i].hook)
	}
	failAll(t, fails)
}

func TestScenariosOfServersInYAML(t *testing.T) { inRealTime(t, served) }

var served = []scenario{
	{"a server is told the event", func(t *testing.T) {
		got := make(chan *http.Request, 2)
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			got <- r
			w.WriteHeader(http.StatusNoContent)
		}))
		f := start(t, `
hooks:
  PreToolUse:
    - {type: http, handler: "`+url+`/hook?team=a", timeout: 60}
  PostToolUse:
    - {type: http, handler: "`+url+`/hook?team=a", timeout: 60}
`)
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(passed...)
		want := schema.Event{HookType: schema.PreToolUse, AgentID: "agent1", SessionID: "session 1", OrchestratorID: "orchestrator 1", ToolName: "Bash", ToolInput: jsontext.Value(bash),
			ToolOutput: jsontext.Value("null")} // each member of an event is there
		wantRequest(t, <-got, want)
		want.HookType, want.ToolOutput = schema.PostToolUse, jsontext.Value(`"done"`)
		wantRequest(t, <-got, want)
	}},
	{"a server that hangs is given up for real", func(t *testing.T) {
		asked, ended := make(chan struct{}), make(chan struct{})
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			hang(w, r)
			close(ended)
		}))
		f := start(t, `{hooks: {PreToolUse: [{name: slow, type: http, handler: "`+url+`", timeout: 3}]}}`)
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(passed...)
		a.wantTrail(0, "slow:deadline")
		await(t, asked, "the server to have been asked at all")
		await(t, ended, "the server to notice that the client has gone")
	}},
	{"a server whose requests cannot be signed is not asked, and the call is denied", func(t *testing.T) {
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			t.Error("it was asked")
			answer(w, `{"decision":"allow"}`)
		}))
		f := start(t, `{hooks: {PreToolUse: [{name: signed, type: http, handler: "`+url+`", sign: NO_KEY_OF_THIS_NAME}]}}`)
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.wantTrail(0, "signed:load_error")
		if len(a.transcript) != 1 || !strings.HasPrefix(a.transcript[0], "error ") || !strings.Contains(a.transcript[0], "NO_KEY_OF_THIS_NAME") {
			t.Errorf("the transcript is %q", a.transcript)
		}
		f.log.want(t, "handler cannot be loaded", "hook=signed", "NO_KEY_OF_THIS_NAME")
	}},
}

// wantRequest compares what a server was sent.
func wantRequest(t *testing.T, r *http.Request, want schema.Event) {
	t.Helper()
	if r.Method != http.MethodPost || r.RequestURI != "/hook?team=a" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s of the type %q", r.Method, r.RequestURI, r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got schema.Event
	if err := schema.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(schema.Event{}, "EventID")); diff != "" {
		t.Errorf("the event differs (-want +got):\n%s", diff)
	}
	if id := r.Header.Get(schema.HeaderID); id == "" || id != got.EventID || r.Header.Get(schema.HeaderEvent) != string(want.HookType) {
		t.Errorf("the headers name the event %q of the type %q, its body %q", id, r.Header.Get(schema.HeaderEvent), got.EventID)
	}
}

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// web is the HTTP endpoint of a test daemon.
type web struct {
	*bench
	*httptest.Server

	t *testing.T
}

func atHTTP(t *testing.T, b *bench) *web {
	t.Helper()
	s := httptest.NewServer(New(Options{Judge: b, Token: "secret", Log: slog.New(slog.DiscardHandler)}).Handler())
	t.Cleanup(s.Close)
	return &web{b, s, t}
}

// post sends a body. A test may change the request first.
func (w *web) post(path, body string, change func(r *http.Request)) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	if change != nil {
		change(r)
	}
	answer, err := w.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, string(said)
}

const asClaude = `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1","cwd":"/"}`

func TestARuntimeIsAnsweredOverHTTPInItsOwnTongue(t *testing.T) {
	w := atHTTP(t, &bench{})
	code, said := w.post("/hook/claude/PreToolUse?agent=alice", asClaude, nil)
	if code != http.StatusOK || !strings.Contains(said, `"permissionDecision":"deny"`) {
		t.Errorf("%d %s", code, said)
	}
	if e := w.first(); e.AgentID != "alice" || e.Runtime != "claude" {
		t.Errorf("%+v", e)
	}
	bustest.Eventually(t, "the answer is handed over", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.handed) == 1 })
	open := atHTTP(t, &bench{says: func(context.Context, decide.Question) decide.Judgement {
		return decide.Judgement{Verdict: &schema.Verdict{}}
	}})
	if code, said := open.post("/hook/claude/PreToolUse", asClaude, nil); code != http.StatusOK || said != "{}" {
		t.Errorf("no opinion is %d %q", code, said)
	}
}

// A fault has a status code for which the runtime's own failure policy applies. A guarded
// call gets a denial in the body.
func TestAFaultIsNeverAYes(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		guarded    bool
		code       int
		says       string
	}{
		"junk, guarded":            {"/hook/claude/PreToolUse", "junk", true, 200, `"permissionDecision":"deny"`},
		"junk":                     {"/hook/claude/PreToolUse", "junk", false, 500, "could not judge"},
		"an empty body":            {"/hook/claude/PreToolUse", "", false, 500, "could not judge"},
		"at the wrong event":       {"/hook/claude/PostToolUse", asClaude, false, 500, "configure the hook at the event"},
		"too large, guarded":       {"/hook/claude/PreToolUse", strings.Repeat("x", schema.MaxEvent+1), true, 200, `"permissionDecision":"deny"`},
		"a loop's junk, guarded":   {"/v1/events/PreToolUse", "junk", true, 200, `"decision":"deny"`},
		"a loop's junk":            {"/v1/events/PreToolUse", "junk", false, 200, `"reason":"`},
		"a loop at another event":  {"/v1/events/PostToolUse", denied, false, 400, "use the same event in both"},
		"an unknown runtime":       {"/hook/vim/PreToolUse", asClaude, true, 404, "unknown runtime"},
		"an unknown event":         {"/hook/claude/PreTool", asClaude, true, 404, "unknown event"},
		"an unknown format":        {"/v1/events/PreToolUse?render=pascal", denied, true, 400, "unknown format"},
		"an ack without event ids": {"/v1/ack", `{"agent_id":"a"}`, false, 400, "event_ids"},
		"an unknown path":          {"/v2", "", false, 404, "not found"},
		"an id that is no id":      {"/hook/claude/PreToolUse", asClaude, true, 400, "UUID"},
		"messages for no call":     {"/v1/events/PostToolUse?render=openai", `{"hook_type":"PostToolUse","agent_id":"a","tool_name":"Bash"}`, true, 400, "tool_use_id"},
		"messages for no tool":     {"/v1/events/PostToolUse?render=gemini", `{"agent_id":"a","tool_use_id":"t"}`, true, 400, "tool_name"},
		"messages for junk":        {"/v1/events/PreToolUse?render=openai", "junk", true, 500, "tool_use_id"},
		"a time that is no time":   {"/hook/claude/PreToolUse", asClaude, true, 400, "duration"},
		"judging that breaks":      {"/hook/claude/PreToolUse", `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{}}`, true, 500, "could not judge"},
		"judging that breaks, too": {"/v1/events/PreToolUse", `{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash"}`, true, 400, "agentshim failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := atHTTP(t, &bench{says: func(_ context.Context, q decide.Question) decide.Judgement {
				v := &schema.Verdict{HookErrors: []string{"malformed"}}
				if strings.HasPrefix(name, "judging that breaks") {
					panic("judging")
				}
				if q.Unreadable != nil {
					v.HookErrors = []string{q.Unreadable.Error()}
				}
				if c.guarded {
					v.Decision, v.Reason = schema.Deny, "guarded"
				}
				return decide.Judgement{Verdict: v}
			}})
			code, said := w.post(c.path, c.body, func(r *http.Request) {
				if name == "an id that is no id" {
					r.Header.Set(idHeader, "0199000000007000800000000000000")
				}
				if name == "a time that is no time" {
					r.Header.Set(leftHeader, "soon")
				}
			})
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("%d %.300s", code, said)
			}
		})
	}
}

func TestWhoMayNotAskIsNotJudgedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *http.Request)
		code   int
	}{
		"no token":                {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"a wrong token":           {func(r *http.Request) { r.Header.Set("Authorization", "Bearer secre") }, 401},
		"the token alone":         {func(r *http.Request) { r.Header.Set("Authorization", "secret") }, 401},
		"the name of another":     {func(r *http.Request) { r.Host = "evil.example:7717" }, 403},
		"a name that begins well": {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403},
		"no name":                 {func(r *http.Request) { r.Host = "0.0.0.0" }, 403},
		"a page":                  {func(r *http.Request) { r.Header.Set("Origin", "http://localhost") }, 403},
		"localhost":               {func(r *http.Request) { r.Host = "LocalHost:1" }, 200},
		"the sixth":               {func(r *http.Request) { r.Host = "[::1]:7717" }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := atHTTP(t, &bench{})
			if code, said := w.post("/hook/claude/PreToolUse", asClaude, c.change); code != c.code || (w.count() > 0) != (code == 200) {
				t.Errorf("%d %s; %d were judged", code, said, w.count())
			}
		})
	}
	locked := httptest.NewServer(New(Options{Judge: &bench{}}).Handler())
	defer locked.Close()
	w := &web{&bench{}, locked, t}
	if code, _ := w.post("/v1/ack", "{}", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }); code != 401 {
		t.Errorf("a daemon without a secret lets everybody in: %d", code)
	}
}

func TestALoopSaysWhatItHas(t *testing.T) {
	const ask = "/v1/events/PreToolUse"
	handed := func(w *web) int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.handed) }
	next := strings.ReplaceAll(denied, "t1", "t2")

	silent := atHTTP(t, &bench{})
	code, said := silent.post(ask+"?render=openai", denied, nil)
	if code != 200 || !strings.Contains(said, `"messages":[`) || !strings.Contains(said, `"event_id":"e1"`) || handed(silent) != 0 {
		t.Errorf("%d %s; %d are handed over", code, said, handed(silent))
	}
	if silent.post(ask, next, nil); handed(silent) != 1 {
		t.Errorf("a loop that goes on has %d answers", handed(silent))
	}

	loud := atHTTP(t, &bench{})
	loud.post(ask, denied, nil)
	if code, said := loud.post("/v1/ack", `{"agent_id":"a","event_ids":["e1","e7"]}`, nil); code != 200 || said != `{"acknowledged":1}` || handed(loud) != 1 {
		t.Errorf("%d %s; %d are handed over", code, said, handed(loud))
	}
	loud.post(ask, next, nil)
	if loud.post(ask, strings.ReplaceAll(denied, "t1", "t3"), nil); handed(loud) != 1 {
		t.Errorf("a loop that says what it has is taken to have more: %d", handed(loud))
	}
}

// A loop without a name also acknowledges by its next request.
func TestALoopWithoutANameSaysWhatItHas(t *testing.T) {
	const ask, event = "/v1/events/PreToolUse", `{"hook_type":"PreToolUse","session_id":"s1","tool_name":"Bash","tool_input":{},"tool_use_id":%q}`
	w := atHTTP(t, &bench{})
	for _, id := range []string{"t1", "t2"} {
		if code, said := w.post(ask, fmt.Sprintf(event, id), nil); code != 200 {
			t.Fatalf("%d %s", code, said)
		}
	}
	if w.mu.Lock(); len(w.handed) != 1 {
		t.Errorf("it has %v", w.handed)
	}
	w.mu.Unlock()
}

// A loop's calls are judged in the trace that it names.
func TestALoopsTraceGoesOn(t *testing.T) {
	var at *trace.Context
	b := &bench{says: func(ctx context.Context, _ decide.Question) decide.Judgement {
		at = trace.From(ctx)
		return decide.Judgement{Verdict: &schema.Verdict{}}
	}}
	want := trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
	w := atHTTP(t, b)
	w.post("/v1/events/PreToolUse", denied, func(r *http.Request) {
		r.Header.Set(schema.HeaderTraceparent, want.Parent())
		r.Header.Set(schema.HeaderTracestate, want.State)
	})
	if at == nil || *at != *want {
		t.Errorf("it is judged at %+v, not at %+v", at, want)
	}
}

// A client that hung up does not have the answer, even if the daemon wrote all of it.
func TestAnAnswerThatNobodyAwaitsIsNotHandedOver(t *testing.T) {
	b := &bench{}
	s := New(Options{Judge: b, Token: "secret", Log: slog.New(slog.DiscardHandler)})
	for _, path := range []string{"/v1/events/PreToolUse", "/hook/generic/PreToolUse"} {
		ctx, hangUp := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(denied))
		r.Header.Set("Authorization", "Bearer secret")
		hangUp()
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	s.loops.asks(t.Context(), "a", false)
	if len(b.handed) != 0 || b.count() == 0 {
		t.Errorf("%v are handed over of %d", b.handed, b.count())
	}
}

// The event has the id that the client would send to the fabric.
func TestAnEventHasTheIDThatItIsAskedUnder(t *testing.T) {
	const id = "01990000-0000-7000-8000-000000000001"
	under := func(id string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Hook-Id", id) } }
	w := atHTTP(t, &bench{})
	if code, said := w.post("/hook/claude/PreToolUse", asClaude, under(id)); code != 200 || w.first().EventID != id {
		t.Errorf("%d %s about %s", code, said, w.first().EventID)
	}
	own := atHTTP(t, &bench{})
	const mine = "01990000-0000-7000-8000-000000000002"
	own.post("/v1/events/PreToolUse", `{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash","event_id":"`+mine+`"}`, under(id))
	if got := own.first().EventID; got != mine {
		t.Errorf("an event's own id became %s", got)
	}
}

func TestTheSecretIsMadeOnceAndForOneselfOnly(t *testing.T) {
	p := Place{State: t.TempDir()}
	one, err := p.MakeToken()
	if err != nil || len(one) < 20 {
		t.Fatalf("%q, %v", one, err)
	}
	if two, err := p.MakeToken(); two != one || err != nil {
		t.Errorf("%q, %v", two, err)
	}
	if info, err := os.Stat(p.Token()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Chmod(p.Token(), 0o640); err != nil {
		t.Fatal(err)
	}
	if two, err := p.MakeToken(); two != one || err != nil {
		t.Errorf("with a group of this process: %q, %v", two, err)
	}
	if err := os.Chmod(p.Token(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.MakeToken(); err == nil || !strings.Contains(err.Error(), "or delete the file") {
		t.Errorf("every user may read the secret, and the daemon says %v", err)
	}
	if err := os.WriteFile(p.Token(), bytes.Repeat([]byte(" "), 40), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.Token(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.MakeToken(); err == nil {
		t.Error("nothing is a secret")
	}
}

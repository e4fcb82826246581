package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// An idleAsker allows each call.
type idleAsker struct{}

func (idleAsker) Ask(context.Context, decide.Question) decide.Judgement {
	return decide.Judgement{Verdict: &schema.Verdict{Decision: schema.Continue}}
}

func (idleAsker) Handed(context.Context, *schema.Verdict, time.Duration) {}

// newTestRelay returns a relay in front of a server, and a function that makes requests to it.
func newTestRelay(t *testing.T, server http.HandlerFunc) (x *Relay, post func(method, session, body string) *httptest.ResponseRecorder) {
	t.Helper()
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	x = &Relay{Guard: &Guard{Asker: idleAsker{}, Server: "srv", Stderr: io.Discard}, Target: target}
	return x, func(method, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set(headerSession, session)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		return w
	}
}

const aCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"m":"x"}}}`

// The relay keeps a call without an answer only if the client can resume the stream.
func TestRelayKeepsOnlyCallsOfBrokenStreams(t *testing.T) {
	kind, status := "", 0
	x, post := newTestRelay(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "id: 1\ndata: \n\n")
	})
	for _, c := range []struct {
		kind   string
		status int
		kept   int
	}{{typeJSON, 200, 0}, {"text/plain", 503, 0}, {typeStream, 200, 1}, {"", 202, 1}} {
		kind, status = c.kind, c.status
		post("POST", "s1", aCall)
		if n := x.sessions.get("s1").calls.count; n != c.kept {
			t.Errorf("after status %d and type %q the relay keeps %d calls, not %d", status, kind, n, c.kept)
		}
	}
	if isFree(x, maxRelayBytes-int64(len(aCall))+1) {
		t.Error("kept calls do not count for their bytes")
	}
	status = 204
	post("DELETE", "s1", "")
	if !isFree(x, maxRelayBytes) || x.sessions.used.Len() != 0 {
		t.Errorf("after its end, a session counts for bytes; the relay knows %d sessions", x.sessions.used.Len())
	}
}

// The memory of a relay has one limit for all its sessions.
func TestRelayMemoryIsBounded(t *testing.T) {
	x, post := newTestRelay(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", typeStream)
		_, _ = io.WriteString(w, "id: 1\ndata: \n\n")
	})
	x.setup()
	const limit = 1 << 20
	x.limit.TryAcquire(maxRelayBytes - limit) // for other sessions
	big := strings.Replace(aCall, `"x"`, `"`+strings.Repeat("x", 100_000)+`"`, 1)
	refused := 0
	for range 20 {
		for _, session := range []string{"s1", "s2", "s3"} {
			if w := post("POST", session, big); w.Code == http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "too many calls") {
				refused++
			}
		}
	}
	if refused == 0 || refused == 60 {
		t.Errorf("the relay refuses %d of 60 calls", refused)
	}
	for i := range maxSessions + 1 { // push the three sessions out
		x.sessions.get(strings.Repeat("x", i+1))
	}
	if !isFree(x, limit) {
		t.Error("forgotten sessions count for bytes")
	}
}

// isFree reports whether n bytes of the relay's memory are free.
func isFree(x *Relay, n int64) bool {
	free := x.limit.TryAcquire(n)
	if free {
		x.limit.Release(n)
	}
	return free
}

// Each of many concurrent calls gets its own answer, once. The relay keeps only the answers that
// clients can fetch again.
func TestConcurrentCallsGetTheirOwnAnswers(t *testing.T) {
	x, _ := newTestRelay(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m lenientMessage
		if err := json.Unmarshal(body, &m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[{"type":"text","text":` + string(m.Params.Arguments) + `}]}}`
		if m.ID[len(m.ID)-1]%2 == 0 {
			w.Header().Set("Content-Type", typeStream)
			_, _ = io.WriteString(w, ": wait\n\nid: 1\ndata: "+answer+"\n\n")
			return
		}
		w.Header().Set("Content-Type", typeJSON)
		_, _ = io.WriteString(w, answer)
	})
	x.Guard.Asker = &fixedAsker{Decision: schema.Continue}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	const sessions, calls = 50, 4
	var all sync.WaitGroup
	for s := range sessions {
		for n := range calls {
			all.Go(func() {
				mark := fmt.Sprintf("s%d-%d", s, n)
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"m":%q}}}`, n, mark)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set(headerSession, fmt.Sprint("s", s))
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if got, err := io.ReadAll(res.Body); err != nil || strings.Count(string(got), "[redacted]") != 1 || strings.Contains(string(got), mark) {
					t.Errorf("%s gets %s, %v", mark, got, err)
				}
			})
		}
	}
	all.Wait()
	for s := range sessions {
		one := x.sessions.get(fmt.Sprint("s", s))
		if one.calls.count != 0 || len(one.replays) != calls {
			t.Errorf("session %d keeps %d calls and %d answers", s, one.calls.count, len(one.replays))
		}
		x.sessions.end(one.id)
	}
	if !isFree(x, maxRelayBytes) {
		t.Error("sessions that have ended count for bytes")
	}
}

// When a client disconnects, the relay ends the server's stream.
func TestStreamEndsWithItsClient(t *testing.T) {
	gone := make(chan struct{})
	x, _ := newTestRelay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", typeStream)
		_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\ndata: {\"half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL, strings.NewReader(aCall))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"method":"x"`) {
		t.Fatalf("%q, %v", line, err)
	}
	leave()
	<-gone
}

package daemon

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/agent/render"
)

// Large bodies wait for each other, which bounds memory. No other request waits for them.
func TestLargeConversationsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rooms := make(chan struct{}, 1)
		rooms <- struct{}{}
		h := rendering(rooms, func(_ render.Format, in []byte) ([]byte, error) { return in[:1], nil })
		post := func(body io.Reader) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			w.Code = 0
			h(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/read?format=openai", body))
			return w
		}
		if small := post(strings.NewReader("small")); small.Code != http.StatusOK {
			t.Errorf("a small one: %d %s", small.Code, small.Body)
		}
		large := strings.Repeat("x", smallBody+1)
		if full := post(strings.NewReader(large)); full.Code != http.StatusServiceUnavailable {
			t.Errorf("where there never is room: %d %s", full.Code, full.Body)
		}
		for _, body := range []io.Reader{strings.NewReader(large), io.LimitReader(strings.NewReader(large), 5)} { // the latter has no length
			answered := make(chan int, 1)
			go func() { answered <- post(body).Code }()
			synctest.Wait()
			select {
			case code := <-answered:
				t.Errorf("it did not wait: %d", code)
				continue
			case <-rooms:
			}
			if code := <-answered; code != http.StatusOK {
				t.Errorf("after it had room: %d", code)
			}
			rooms <- struct{}{}
		}
	})
}

// The daemon renders the conversations of a loop without its own library, and reads its
// model's answers. The secret is the same as for all other requests, and the daemon does
// not ask the fabric.
func TestConversationsAreRenderedForLoops(t *testing.T) {
	b := &bench{}
	w := atHTTP(t, b)
	for _, c := range []struct {
		path, body string
		code       int
		says       string
	}{
		{"/v1/render?format=openai", `{"messages":[{"role":"user","content":"go"}],"tools":null}`, 200, `{"messages":[{"role":"user","content":"go"}]}`},
		{"/v1/render?format=gemini", `{"messages":[{"role":"user","content":"go"}]}`, 200, `{"contents":[`},
		{"/v1/read?format=openai", `{"choices":[{"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`, 200, `{"role":"assistant","content":"done"`},
		{"/v1/render?format=openai", `{"messages":[`, 400, `the conversation cannot be read`},
		{"/v1/render?format=openai", `{}`, 400, "the conversation has only system messages"},
		{"/v1/read?format=anthropic", `{"type":"error","error":{"message":"Overloaded"}}`, 400, "Overloaded"},
		{"/v1/render", `{}`, 400, "write one of anthropic, openai, openai-structured, gemini, grok"},
		{"/v1/read?format=yaml", `{}`, 400, `unknown format "yaml"`},
		{"/v1/read?format=openai", strings.Repeat(" ", render.MaxInput+1), 413, "larger than"},
	} {
		if code, said := w.post(c.path, c.body, nil); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, code, said)
		}
	}
	if code, said := w.post("/v1/render?format=openai", `{}`, func(r *http.Request) { r.Header.Del("Authorization") }); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d %s", code, said)
	}
	if b.mu.Lock(); len(b.handed) > 0 {
		t.Errorf("somebody was asked: %v", b.handed)
	}
	b.mu.Unlock()
}

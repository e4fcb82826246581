package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// knowing is a judge that has the needs of the agent named a.
type knowing struct{ *bench }

func (knowing) Needs(_ context.Context, agent string) (client.Needs, error) {
	if agent != "a" {
		return client.Needs{}, errors.New("the fabric is unreachable")
	}
	return client.Needs{ConfigVersion: 7, History: []schema.EventType{schema.BeforeLLMCall, schema.QueryEnd}}, nil
}

func TestALoopIsToldWhichEventsAreToHaveTheConversation(t *testing.T) {
	for name, c := range map[string]struct {
		judge Judge
		query string
		code  int
		says  string
	}{
		"an agent":           {knowing{&bench{}}, "?agent=a", http.StatusOK, `{"config_version":7,"history":["BeforeLLMCall","QueryEnd"]}`},
		"an unreachable one": {knowing{&bench{}}, "?agent=b", http.StatusServiceUnavailable, "unreachable"},
		"an unnamed agent":   {knowing{&bench{}}, "", http.StatusBadRequest, "?agent="},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Judge: c.judge, Token: "secret"})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/needs"+c.query, nil)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != http.StatusUnauthorized {
				t.Errorf("without the token: %d", w.Code)
			}
			r.Header.Set("Authorization", "Bearer secret")
			w = httptest.NewRecorder()
			if s.Handler().ServeHTTP(w, r); w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// A loop can send a long conversation as a whole.
func TestAnEventMayComeWithALongConversation(t *testing.T) {
	b := &bench{}
	w := atHTTP(t, b)
	message := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("long ", 200_000))
	event := func(n int) string {
		return `{"hook_type":"BeforeLLMCall","agent_id":"a","history":[` + strings.Repeat(message+",", n-1) + message + `]}`
	}
	for n, reads := range map[int]bool{1: true, 12: true, 80: false} {
		before := len(b.asked)
		_, said := w.post("/v1/events/BeforeLLMCall", event(n), nil)
		if len(b.asked) != before+1 {
			t.Fatalf("%d MB were not judged: %s", n, said)
		}
		want := 0
		if reads {
			want = n*(len(message)+1) + 1
		}
		if got := len(b.asked[before].History); got != want {
			t.Errorf("%d MB: %d bytes of it are judged, not %d", n, got, want)
		}
	}
}

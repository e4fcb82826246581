package daemon

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// moding is a judge with a queue for the agent named a.
type moding struct {
	*bench
	voteOnly, again bool
}

var errNoQueue = errors.New("the fabric is unreachable")

func (m *moding) Mode(_ context.Context, agent string, voteOnly *bool) (schema.ModeAnswer, error) {
	if agent != "a" {
		return schema.ModeAnswer{}, errNoQueue
	}
	if voteOnly != nil {
		m.voteOnly = *voteOnly
	}
	return schema.ModeAnswer{VoteOnly: m.voteOnly}, nil
}

func (m *moding) Checkpoint(_ context.Context, agent string) error {
	if agent != "a" {
		return errNoQueue
	}
	m.again = true
	return nil
}

func TestALoopSetsItsModeAndSaysThatItStartsAgain(t *testing.T) {
	m := &moding{bench: &bench{}}
	for _, c := range []struct {
		name  string
		judge Judge
		path  string
		body  string
		code  int
		says  string
	}{
		{"no mode was set", m, "/v1/mode", `{"agent_id":"a"}`, http.StatusOK, `{"vote_only":false}`},
		{"a mode is set", m, "/v1/mode", `{"agent_id":"a","vote_only":true}`, http.StatusOK, `{"vote_only":true}`},
		{"that mode is shown", m, "/v1/mode", `{"agent_id":"a"}`, http.StatusOK, `{"vote_only":true}`},
		{"the agent starts again", m, "/v1/checkpoint", `{"agent_id":"a"}`, http.StatusOK, `{}`},
		{"the fabric is not there", m, "/v1/checkpoint", `{"agent_id":"b"}`, http.StatusServiceUnavailable, "unreachable"},
		{"the fabric is not there for a mode", m, "/v1/mode", `{"agent_id":"b"}`, http.StatusServiceUnavailable, "unreachable"},
		{"no agent is named", m, "/v1/checkpoint", `{}`, http.StatusBadRequest, "agent_id"},
		{"junk", m, "/v1/mode", `junk`, http.StatusBadRequest, "reading the request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Options{Judge: c.judge, Token: "secret"})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+c.path, strings.NewReader(c.body))
			r.Header.Set("Authorization", "Bearer secret")
			w := httptest.NewRecorder()
			if s.Handler().ServeHTTP(w, r); w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	if !m.again {
		t.Error("the checkpoint was not passed on")
	}
}

package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Moder returns and changes the mode in which other agents' answers reach an agent. It is
// a [judge.Judge].
type Moder interface {
	Mode(ctx context.Context, agent string, voteOnly *bool) (schema.ModeAnswer, error)
	Checkpoint(ctx context.Context, agent string) error
}

// modeTime limits how long that may take.
const modeTime = 5 * time.Second

// aboutAgent is a loop's request about its agent's queue.
type aboutAgent struct {
	Agent    string `json:"agent_id"`
	VoteOnly *bool  `json:"vote_only"`
}

// postMode returns the agent's mode, or changes it.
func (s *Server) postMode(w http.ResponseWriter, r *http.Request) {
	s.moded(w, r, func(ctx context.Context, m Moder, a *aboutAgent) (any, error) {
		return m.Mode(ctx, a.Agent, a.VoteOnly)
	})
}

// postCheckpoint reports that the agent starts again.
func (s *Server) postCheckpoint(w http.ResponseWriter, r *http.Request) {
	s.moded(w, r, func(ctx context.Context, m Moder, a *aboutAgent) (any, error) {
		return struct{}{}, m.Checkpoint(ctx, a.Agent)
	})
}

func (s *Server) moded(w http.ResponseWriter, r *http.Request, do func(context.Context, Moder, *aboutAgent) (any, error)) {
	var a aboutAgent
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAck))
	if err == nil {
		err = schema.Unmarshal(body, &a)
	}
	if err == nil && a.Agent == "" {
		err = errors.New(`write {"agent_id": "…"}`)
	}
	if err != nil {
		fault(w, http.StatusBadRequest, "reading the request: "+err.Error())
		return
	}
	m, ok := s.opt.Judge.(Moder)
	if !ok {
		fault(w, http.StatusServiceUnavailable, "this daemon has no connection for queues")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), modeTime)
	defer cancel()
	said, err := do(ctx, m, &a)
	if err != nil {
		fault(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answerJSON(w, said)
}

package daemon

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
)

// A Needer returns which events must include the conversation. It is a [judge.Judge].
type Needer interface {
	Needs(ctx context.Context, agent string) (client.Needs, error)
}

// needsTime limits how long the judge may take to find out.
const needsTime = 2 * time.Second

var errNoNeeds = errors.New("this daemon cannot tell which hooks need the conversation")

// getNeeds returns the events at which an agent's loop must send its conversation. A loop
// without this answer sends it with all events, or with none.
func (s *Server) getNeeds(w http.ResponseWriter, r *http.Request) {
	agent := r.URL.Query().Get("agent")
	if agent == "" {
		fault(w, http.StatusBadRequest, "the agent is missing; write ?agent= and the agent's id")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), needsTime)
	defer cancel()
	var needs client.Needs
	err := errNoNeeds
	if j, ok := s.opt.Judge.(Needer); ok {
		needs, err = j.Needs(ctx, agent)
	}
	if err != nil {
		fault(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answerJSON(w, needs)
}

package daemon

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
)

// A Needer knows which events are to have the conversation with them: a [judge.Judge].
type Needer interface {
	Needs(ctx context.Context, agent string) (client.Needs, error)
}

// needsTime bounds how long it takes to find out.
const needsTime = 2 * time.Second

var errNoNeeds = errors.New("this daemon cannot tell which hooks need the conversation")

// getNeeds says at which events an agent's loop is to send its conversation. A
// loop that is not told sends it at all of them, or none.
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

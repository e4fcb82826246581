package mcp

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// The protocols of 2026-07-28 and later have no requests of servers: what a user
// is to be asked is in the result of a call, which the client makes again with
// the answer.
const (
	// statePrefix begins the request states of the proxy.
	statePrefix = "hookfabric."
	// inputName names its question.
	inputName = "hookfabric-approval"
	// roundsMost bounds the questions that wait, and roundFor how long one does.
	roundsMost = 1000
	roundFor   = 10 * time.Minute
	// carriedMost bounds what the server's own round before it carries, in bytes.
	carriedMost = 1 << 20
)

// A rounds keeps calls that wait for their user's word.
type rounds struct {
	mu    sync.Mutex // guards what follows
	asked map[string]*round
}

// A round is one call that waits.
type round struct {
	end    time.Time
	call   [sha256.Size]byte
	reason string
	input  jsontext.Value // rewritten; nil: it was not
	later  []schema.Injection
	own    string
	// state and responses are of the server's own round, to which the call belongs.
	state, responses jsontext.Value
}

// inputRequired asks the user by the result of a call.
func (g *Guard) inputRequired(c *call, r ruling) ruling {
	kept := &round{
		end: time.Now().Add(roundFor), call: sameCall(c), reason: r.ask, later: c.later, own: c.own,
		state: c.params.get("requestState"), responses: c.params.get("inputResponses"),
	}
	if len(kept.state)+len(kept.responses) > carriedMost {
		return g.refused(c, "a person must approve this call, but it is too large for a question to the user: "+r.ask)
	}
	kept.input = c.ran
	state := g.rounds.keep(kept)
	if state == "" {
		return g.refused(c, "a person must approve this call, but too many calls already wait for approval: "+r.ask)
	}
	data, err := schema.Marshal(struct {
		Type     string         `json:"resultType"`
		Requests map[string]any `json:"inputRequests"`
		State    string         `json:"requestState"`
	}{"input_required", map[string]any{inputName: map[string]any{"method": methodElicit, "params": form(c, r.ask)}}, state})
	if err != nil {
		return g.refused(c, "a person must approve this call, but agentshim could not encode the question: "+r.ask)
	}
	return ruling{answer: g.answer(c, data)}
}

// resumed is what becomes of a call that comes with a user's word; false: it does not.
func (g *Guard) resumed(c *call) (ruling, bool) {
	state := c.params.text("requestState")
	if c.unclear != nil || !strings.HasPrefix(state, statePrefix) {
		return ruling{}, false
	}
	kept := g.rounds.take(state)
	switch {
	case kept == nil:
		return g.refused(c, "the question to the user has expired; make the call again"), true
	case kept.call != sameCall(c):
		return g.refused(c, "the user answered a question about another call; make this call again"), true
	}
	c.later, c.ran, c.own = kept.later, kept.input, kept.own
	responses := c.params.inner("inputResponses")
	word := responses.inner(inputName)
	approved, why := approval(word.text("action"), kept.reason)
	if !approved {
		return g.refused(c, why), true
	}
	params, err := readObject(c.params.without("requestState", "inputResponses"))
	for _, put := range []struct {
		name  string
		value jsontext.Value
	}{{"arguments", kept.input}, {"inputResponses", kept.responses}, {"requestState", kept.state}} {
		if put.value != nil && err == nil {
			params, err = readObject(params.with(put.name, put.value))
		}
	}
	if err != nil {
		return g.refused(c, "agentshim could not rebuild the call: "+err.Error()), true
	}
	return ruling{forward: c.with("params", params.raw)}, true
}

// sameCall is the same for a call that is made again, and for no other.
func sameCall(c *call) [sha256.Size]byte {
	args := input(&c.params).Clone()
	_ = args.Canonicalize(jsontext.AllowInvalidUTF8(true)) // else it is compared as it is
	return sha256.Sum256(append([]byte(c.agent+"\x00"+c.tool+"\x00"), args...))
}

// keep takes in a call and returns its state; empty: too many wait.
func (r *rounds) keep(one *round) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]*round{}
	}
	if len(r.asked) >= roundsMost {
		now := time.Now()
		for state, old := range r.asked {
			if old.end.Before(now) {
				delete(r.asked, state)
			}
		}
		if len(r.asked) >= roundsMost {
			return ""
		}
	}
	state := statePrefix + rand.Text()
	r.asked[state] = one
	return state
}

// take returns a call that waits, once; nil: it does not any more.
func (r *rounds) take(state string) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.asked[state]
	delete(r.asked, state)
	if one == nil || one.end.Before(time.Now()) {
		return nil
	}
	return one
}

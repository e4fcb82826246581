package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// DefaultAskTimeout is the default limit for a person's answer.
const DefaultAskTimeout = 5 * time.Minute

// maxShown is how much of a call's arguments the person sees, in bytes.
const maxShown = 2000

// An elicitation asks the client's user, with requests of which the server sees nothing.
type elicitation struct {
	timeout time.Duration
	prefix  string // of the ids of its requests

	mu      sync.Mutex // guards the fields below
	count   int
	waiting map[string]chan message // by id
}

// newElicitation returns an elicitation with a limit for each answer; 0: [DefaultAskTimeout].
func newElicitation(timeout time.Duration) *elicitation {
	if timeout <= 0 {
		timeout = DefaultAskTimeout
	}
	return &elicitation{timeout: timeout, prefix: "hookfabric-" + rand.Text(), waiting: map[string]chan message{}}
}

// takeAnswer takes a response to one of its requests. It returns false for other messages.
func (e *elicitation) takeAnswer(m *message) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := text(m.id)
	answer := e.waiting[id]
	delete(e.waiting, id)
	if answer != nil {
		answer <- *m
	}
	return answer != nil || len(id) > len(e.prefix) && strings.HasPrefix(id, e.prefix)
}

// ask asks the user to approve a call. why is why the call is not approved.
func (e *elicitation) ask(ctx context.Context, c *call, reason string, send func([]byte) error) (approved bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	answer := make(chan message, 1)
	e.mu.Lock()
	e.count++
	id := fmt.Sprintf("%s-%d-%s", e.prefix, e.count, rand.Text()) // another session cannot guess it
	e.waiting[id] = answer
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.waiting, id)
		e.mu.Unlock()
	}()
	data, err := schema.Marshal(struct {
		Version string     `json:"jsonrpc"`
		ID      string     `json:"id"`
		Method  string     `json:"method"`
		Params  elicitForm `json:"params"`
	}{"2.0", id, methodElicit, newForm(c, reason)})
	if err == nil {
		err = send(data)
	}
	if err != nil {
		return false, "a person must approve this call, but agentshim could not ask the user: " + err.Error()
	}
	select {
	case m := <-answer:
		result := m.child("result")
		return isApproved(result.text("action"), reason)
	case <-ctx.Done():
	}
	data, err = schema.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": methodCancelled, "params": map[string]string{"requestId": id, "reason": "the call has ended"},
	})
	if err == nil {
		_ = send(data) // a client that is gone needs no cancellation
	}
	return false, "a person must approve this call, but the user did not answer in time: " + reason
}

func isApproved(action, reason string) (approved bool, why string) {
	switch action {
	case "accept":
		return true, ""
	case "decline":
		return false, "the user declined this call: " + reason
	}
	return false, "the user closed the question without approving this call: " + reason
}

// An elicitForm asks a person to accept or to decline. It has no other fields.
type elicitForm struct {
	Message string     `json:"message"`
	Schema  formSchema `json:"requestedSchema"`
}

type formSchema struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
}

// newForm shows a call with the arguments with which it would run.
func newForm(c *call, reason string) elicitForm {
	args := string(c.input)
	if c.input == nil {
		args = string(c.arguments())
	}
	if over := len(args) - maxShown; over > 0 {
		args = fmt.Sprintf("%s… and %d bytes more", args[:maxShown], over)
	}
	return elicitForm{
		Message: strings.ToValidUTF8(fmt.Sprintf("%s\n\nAllow the tool %s of the MCP server %s to run with %s?", reason, c.tool, c.server, args), "\uFFFD"),
		Schema:  formSchema{Type: "object", Properties: map[string]any{}},
	}
}

// From 2026-07-28 on, a question to the user is in the result of a call, and the answer in another call.
const (
	statePrefix = "hookfabric."         // begins the request states of the proxy
	inputName   = "hookfabric-approval" // the name of the question
	// maxApprovals bounds the questions that wait, and approvalTime the time that each waits.
	maxApprovals = 1000
	approvalTime = 10 * time.Minute
	// maxCarried bounds the state that a call carries from an earlier question of the server, in bytes.
	maxCarried = 1 << 20
)

// The approvals are the calls that wait for an answer in another call.
type approvals struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]*approval
}

type approval struct {
	expires          time.Time
	call             [sha256.Size]byte
	reason           string
	key              string // of the call
	input            jsontext.Value
	injections       []schema.Injection
	state, responses jsontext.Value // answer an earlier question of the server
}

// askInResult asks the user with the result of a call.
func (g *Guard) askInResult(c *call, r ruling) ruling {
	a := &approval{
		expires: time.Now().Add(approvalTime), call: hashCall(c), reason: r.ask, key: c.key, input: c.input, injections: c.injections,
		state: c.params.get("requestState"), responses: c.params.get("inputResponses"),
	}
	if len(a.state)+len(a.responses) > maxCarried {
		return g.refuse(c, "a person must approve this call, but it is too large for a question to the user: "+r.ask)
	}
	state := g.approvals.add(a)
	if state == "" {
		return g.refuse(c, "a person must approve this call, but too many calls already wait for approval: "+r.ask)
	}
	data, err := schema.Marshal(struct {
		Type     string         `json:"resultType"`
		Requests map[string]any `json:"inputRequests"`
		State    string         `json:"requestState"`
	}{"input_required", map[string]any{inputName: map[string]any{"method": methodElicit, "params": newForm(c, r.ask)}}, state})
	if err != nil {
		return g.refuse(c, "a person must approve this call, but agentshim could not encode the question: "+r.ask)
	}
	return ruling{answer: c.answer(data)}
}

// resume returns the ruling on a call that comes with a person's answer; false: it does not.
func (g *Guard) resume(c *call) (ruling, bool) {
	state := c.params.text("requestState")
	if c.ambiguity != nil || !strings.HasPrefix(state, statePrefix) {
		return ruling{}, false
	}
	a := g.approvals.take(state)
	switch {
	case a == nil:
		return g.refuse(c, "the question to the user has expired; make the call again"), true
	case a.call != hashCall(c):
		return g.refuse(c, "the user answered a question about another call; make this call again"), true
	}
	c.injections, c.input, c.key = a.injections, a.input, a.key
	responses := c.params.child("inputResponses")
	answer := responses.child(inputName)
	if approved, why := isApproved(answer.text("action"), a.reason); !approved {
		return g.refuse(c, why), true
	}
	params, err := readObject(c.params.without("requestState", "inputResponses"))
	for _, part := range []struct {
		name  string
		value jsontext.Value
	}{{"arguments", a.input}, {"inputResponses", a.responses}, {"requestState", a.state}} {
		if part.value != nil && err == nil {
			params, err = readObject(params.with(part.name, part.value))
		}
	}
	if err != nil {
		return g.refuse(c, "agentshim could not rebuild the call: "+err.Error()), true
	}
	return ruling{forward: c.with("params", params.raw)}, true
}

// hashCall returns the same hash for a repeated call, and for no other.
func hashCall(c *call) [sha256.Size]byte {
	args := c.arguments().Clone()
	_ = args.Canonicalize(jsontext.AllowInvalidUTF8(true)) // otherwise the spelling counts
	return sha256.Sum256(append([]byte(c.agent+"\x00"+c.tool+"\x00"), args...))
}

// add adds a call and returns its request state, or "" if too many calls wait.
func (a *approvals) add(one *approval) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]*approval{}
	}
	if len(a.waiting) >= maxApprovals {
		now := time.Now()
		maps.DeleteFunc(a.waiting, func(_ string, old *approval) bool { return old.expires.Before(now) })
		if len(a.waiting) >= maxApprovals {
			return ""
		}
	}
	state := statePrefix + rand.Text()
	a.waiting[state] = one
	return state
}

// take removes and returns the call with a request state; nil if it has expired.
func (a *approvals) take(state string) *approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.waiting[state]
	delete(a.waiting, state)
	if one == nil || one.expires.Before(time.Now()) {
		return nil
	}
	return one
}

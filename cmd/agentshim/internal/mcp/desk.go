package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// DefaultAskTimeout is how long a person may take to answer.
const DefaultAskTimeout = 5 * time.Minute

// shownMost is how much of a call's arguments a person is shown, in bytes.
const shownMost = 2000

// A desk asks the client's user, by requests of its own that the server never
// sees, and neither their answers.
type desk struct {
	*drawer
	client *lineWriter
}

// A drawer is what is asked, by whichever line.
type drawer struct {
	timeout time.Duration
	name    string // begins the ids of all its requests

	mu    sync.Mutex // guards what follows
	asked int
	waits map[string]chan message // by id
}

func newDesk(client *lineWriter, timeout time.Duration) *desk {
	if timeout <= 0 {
		timeout = DefaultAskTimeout
	}
	return &desk{&drawer{timeout: timeout, name: "hookfabric-" + rand.Text(), waits: map[string]chan message{}}, client}
}

// through is the desk with another line to its client.
func (d *desk) through(client *lineWriter) *desk { return &desk{d.drawer, client} }

// answered takes an answer to a request of the desk; false: it is to another one.
func (d *desk) answered(m *message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := text(m.id)
	w := d.waits[id]
	delete(d.waits, id)
	if w != nil {
		w <- *m
	}
	return w != nil || len(id) > len(d.name) && id[:len(d.name)] == d.name
}

// ask asks the user to approve a call, and waits for the answer. why says why
// it is not approved.
func (d *desk) ask(ctx context.Context, c *call, reason string) (approved bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	answer := make(chan message, 1)
	d.mu.Lock()
	d.asked++
	id := fmt.Sprintf("%s-%d-%s", d.name, d.asked, rand.Text()) // of another session nobody can answer it
	d.waits[id] = answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waits, id)
		d.mu.Unlock()
	}()
	data, err := schema.Marshal(struct {
		Version string     `json:"jsonrpc"`
		ID      string     `json:"id"`
		Method  string     `json:"method"`
		Params  elicitForm `json:"params"`
	}{"2.0", id, methodElicit, form(c, reason)})
	if err == nil {
		err = d.client.line(data)
	}
	if err != nil {
		return false, "a person must approve this call, but agentshim could not ask the user: " + err.Error()
	}
	select {
	case m := <-answer:
		result := m.inner("result")
		return approval(result.text("action"), reason)
	case <-ctx.Done():
		d.withdraw(id)
		return false, "a person must approve this call, but the user did not answer in time: " + reason
	}
}

// withdraw tells the client that a question has no use any more.
func (d *desk) withdraw(id string) {
	data, err := schema.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": methodCancelled, "params": map[string]string{"requestId": id, "reason": "the call has ended"},
	})
	if err == nil {
		_ = d.client.line(data) // the client has other worries then
	}
}

// approval is what a person's answer means.
func approval(action, reason string) (approved bool, why string) {
	switch action {
	case "accept":
		return true, ""
	case "decline":
		return false, "the user declined this call: " + reason
	}
	return false, "the user closed the question without approving this call: " + reason
}

// An elicitForm asks a person to accept or to decline, and for nothing else.
type elicitForm struct {
	Message string     `json:"message"`
	Schema  formSchema `json:"requestedSchema"`
}

type formSchema struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
}

// form shows the call as it is to run, with what hooks made of it.
func form(c *call, reason string) elicitForm {
	args := string(c.ran)
	if c.ran == nil {
		args = string(input(&c.params))
	}
	if over := len(args) - shownMost; over > 0 {
		args = fmt.Sprintf("%s… and %d bytes more", args[:shownMost], over)
	}
	return elicitForm{
		Message: strings.ToValidUTF8(fmt.Sprintf("%s\n\nAllow the tool %s of the MCP server %s to run with %s?", reason, c.tool, c.server, args), "\uFFFD"),
		Schema:  formSchema{Type: "object", Properties: map[string]any{}},
	}
}

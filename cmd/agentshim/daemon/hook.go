package daemon

import (
	"strconv"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
)

// A Request is one call of `agentshim hook` that the daemon makes in place of the hook.
type Request struct {
	// Runtime, Event, Agent and Unreachable are flags. An empty Event is in the payload.
	Runtime, Event, Agent, Unreachable string
	// EventID is the event's id, also if the hook must ask the fabric itself.
	EventID string
	// Workspaces is an absolute path; empty: the event's cwd.
	Workspaces string
	// NATS and Creds identify the fabric of the hook's environment; empty: the daemon's.
	NATS, Creds string
	// Env looks up one of [dialect.Environment]; nil: no variable is set.
	Env func(name string) string
	// Payload is the runtime's input. Unread is why it is incomplete.
	Payload []byte
	Unread  string
}

// A Reply is the output that the hook must write.
type Reply struct {
	dialect.Answer
	// Log is text for people, which the hook writes before the answer's own stderr.
	Log string

	line line
}

// Hook makes the daemon judge a request before the deadline. After an error the hook must do that.
func Hook(socket string, r *Request, deadline time.Time) (*Reply, error) {
	l, err := dial(socket, deadline)
	if err != nil {
		return nil, err
	}
	m, err := talk(l, r.message(deadline), deadline)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	exit, err := strconv.Atoi(m.Words[wordExit])
	if err != nil {
		_ = l.Close()
		return nil, ErrLost
	}
	return &Reply{
		Answer: dialect.Answer{Stdout: m.Body, Stderr: m.Words[wordStderr], Exit: exit},
		Log:    m.Words[wordReason], line: l,
	}, nil
}

// Written reports to the daemon that the runtime has the answer, and ends the call.
func (r *Reply) Written() {
	written(r.line)
	r.Close()
}

// Close ends the call. Without Written before it, the fabric sends the items again.
func (r *Reply) Close() { _ = r.line.Close() }

// words returns the words of a request, and where their values are.
func (r *Request) words() map[string]*string {
	return map[string]*string{wordRuntime: &r.Runtime, wordEvent: &r.Event, wordAgent: &r.Agent, wordID: &r.EventID, wordUnreachable: &r.Unreachable,
		wordUnreadable: &r.Unread, wordWorkspaces: &r.Workspaces, wordNATS: &r.NATS, wordCreds: &r.Creds}
}

func (r *Request) message(deadline time.Time) *frame.Message {
	m := &frame.Message{Kind: frame.Hook, Body: r.Payload, Words: words(wordLeft, time.Until(deadline).String())}
	for name, at := range r.words() {
		if *at != "" {
			m.Words[name] = *at
		}
	}
	for _, name := range dialect.Environment() {
		if r.Env != nil && r.Env(name) != "" {
			m.Words[wordEnv+name] = r.Env(name)
		}
	}
	return m
}

func request(m *frame.Message) *Request {
	r := &Request{Payload: m.Body, Env: func(name string) string { return m.Words[wordEnv+name] }}
	for name, at := range r.words() {
		*at = m.Words[name]
	}
	return r
}

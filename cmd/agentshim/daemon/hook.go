package daemon

import (
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
)

// A Request is one call of `agentshim hook`, for the daemon to make in its place.
type Request struct {
	// Runtime and Event are as on the command line; an empty Event: the payload
	// names it. So are Agent and Unreachable.
	Runtime, Event, Agent, Unreachable string
	// EventID is the event's id, so that it is the same one if the hook must ask itself.
	EventID string
	// Workspaces is an absolute path; empty: the event's cwd.
	Workspaces string
	// NATS and Creds are the fabric that the hook's environment names; empty:
	// whichever the daemon is for.
	NATS, Creds string
	// Env looks up one of [dialect.Environment]; nil: there is none.
	Env func(name string) string
	// Payload is what the runtime sent, and Unread why that is not all; empty: it is.
	Payload []byte
	Unread  string
}

// A Reply is what the hook is to write.
type Reply struct {
	dialect.Answer
	// Log is for the people who read stderr; it goes before the answer's own.
	Log string

	line line
}

// Hook has the daemon at a socket make a request's exchange, before the
// deadline. After an error the hook has to make it itself.
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

// Written tells the daemon that the runtime has the answer, and ends the call.
func (r *Reply) Written() {
	written(r.line)
	r.Close()
}

// Close ends the call; without Written before it, what was to be handed over
// comes again.
func (r *Reply) Close() { _ = r.line.Close() }

func (r *Request) message(deadline time.Time) *frame.Message {
	m := &frame.Message{Kind: frame.Hook, Body: r.Payload, Words: words(
		wordRuntime, r.Runtime, wordEvent, r.Event, wordAgent, r.Agent, wordID, r.EventID, wordUnreachable, r.Unreachable,
		wordUnreadable, r.Unread, wordWorkspaces, r.Workspaces, wordNATS, r.NATS, wordCreds, r.Creds,
		wordLeft, time.Until(deadline).String())}
	if r.Env != nil {
		for _, name := range dialect.Environment() {
			if v := r.Env(name); v != "" {
				m.Words[wordEnv+name] = v
			}
		}
	}
	return m
}

// request reads what message wrote.
func request(m *frame.Message) *Request {
	w := m.Words
	env := map[string]string{}
	for name, word := range w {
		if v, ok := strings.CutPrefix(name, wordEnv); ok {
			env[v] = word
		}
	}
	return &Request{
		Runtime: w[wordRuntime], Event: w[wordEvent], Agent: w[wordAgent], EventID: w[wordID], Unreachable: w[wordUnreachable],
		Unread: w[wordUnreadable], Workspaces: w[wordWorkspaces], NATS: w[wordNATS], Creds: w[wordCreds],
		Env: func(name string) string { return env[name] }, Payload: m.Body,
	}
}

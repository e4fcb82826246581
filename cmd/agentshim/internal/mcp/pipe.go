package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"
)

// lastCalls limits how long calls may still reach the server after the client's last message.
const lastCalls = 5 * time.Second

// A Pipe is the proxy between a client and a server that exchange lines.
type Pipe struct {
	Guard *Guard
	// AskTimeout limits the time for a person's answer; 0: [DefaultAskTimeout].
	AskTimeout time.Duration
	// FromClient and ToClient are the client's output and input.
	FromClient io.Reader
	ToClient   io.Writer
	// FromServer and ToServer are the server's. The Pipe closes ToServer after the client's last message.
	FromServer io.Reader
	ToServer   io.WriteCloser
}

// Run passes messages on until the server's output or ctx ends, or the client stops reading.
func (p *Pipe) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := newConn(ctx, p, p.ToServer, cancel)
	go func() { // ends with the client's output, at the latest with the process
		c.readClient(p.FromClient)
		waitAtMost(ctx, lastCalls, c.ruling.Wait)
		_ = p.ToServer.Close()
	}()
	c.readServer(p.FromServer)
	c.session.calls.stop()
	c.judging.Wait()
	return context.Cause(ctx)
}

// waitAtMost returns when wait does, after a time, or when ctx ends.
func waitAtMost(ctx context.Context, limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	case <-ctx.Done():
	}
}

type conn struct {
	session        *session
	elicitation    *elicitation
	client, server *lineWriter
	ctx            context.Context
	stop           context.CancelCauseFunc // ends ctx
	ruling         sync.WaitGroup          // calls that the server does not have yet
	judging        sync.WaitGroup          // results that the client does not have yet
	judged         *semaphore.Weighted     // limits the bytes of these results
}

// newConn returns a conn that lasts as long as ctx, which stop ends.
func newConn(ctx context.Context, p *Pipe, toServer io.Writer, stop context.CancelCauseFunc) *conn {
	return &conn{
		session:     newSession("", p.Guard, semaphore.NewWeighted(maxBytes)),
		elicitation: newElicitation(p.AskTimeout),
		client:      &lineWriter{w: p.ToClient}, server: &lineWriter{w: toServer},
		ctx: ctx, stop: stop, judged: semaphore.NewWeighted(maxBytes),
	}
}

var errClientGone = errors.New("the client stopped reading")

// toClient writes a line to the client. If that fails, it stops the Pipe and returns false.
func (c *conn) toClient(line []byte) bool {
	if line == nil {
		return true
	}
	if err := c.client.write(line); err != nil {
		c.stop(errClientGone)
		return false
	}
	return true
}

func (c *conn) readClient(r io.Reader) {
	in := bufio.NewReaderSize(r, excerpt)
	for {
		line, err := readLine(in)
		if long, ok := errors.AsType[*tooLongError](err); ok {
			c.session.guard.log("dropped a message of the client that is longer than 64 MiB")
			c.toClient(errorResponse(long.id(), codeRequest, "the message is longer than 64 MiB, so agentshim dropped it; send less at once"))
			continue
		}
		if err != nil {
			return
		}
		c.handleClient(line)
	}
}

// handleClient passes on one line of the client. Other lines overtake calls that wait for verdicts. The lock
// on the server's input keeps a cancellation behind its call.
func (c *conn) handleClient(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		_ = c.server.write(line) // a server that does not read has ended, or will
		return
	}
	f, err := readFrame(line)
	if err != nil {
		c.session.guard.log("dropped a line of the client that is not a JSON-RPC message: %v", err)
		c.toClient(errorResponse(nil, codeParse, "this is not a JSON-RPC message: "+err.Error()))
		return
	}
	rest, calls := c.session.readClient(&f, c.elicitation)
	pending := c.session.addCalls(c.ctx, calls, len(line))
	if len(rest) > len(calls) || len(f.messages) == 0 { // calls alone do not wait until the server reads
		c.server.mu.Lock()
		rest = c.session.cancel(rest)
		if len(calls) == 0 {
			c.toServer(&f, rawMessages(rest))
		}
		c.server.mu.Unlock()
	}
	if len(calls) == 0 {
		return
	}
	c.ruling.Go(func() {
		rulings := c.session.rule(calls, pending, c.elicitation, c.client.write)
		c.server.mu.Lock()
		forward, answers, _ := c.session.apply(rest, pending, rulings)
		c.toServer(&f, forward)
		c.server.mu.Unlock()
		if len(answers) > 0 {
			c.toClient(f.encode(answers))
		}
	})
}

// toServer writes the messages of a frame to the server. The caller holds the lock.
func (c *conn) toServer(f *frame, messages []jsontext.Value) {
	if len(messages) > 0 || len(f.messages) == 0 {
		_ = c.server.writeLocked(f.encode(messages)) // a server that does not read has ended, or will
	}
}

func (c *conn) readServer(r io.Reader) {
	in := bufio.NewReaderSize(r, excerpt)
	for c.ctx.Err() == nil {
		line, err := readLine(in)
		if long, ok := errors.AsType[*tooLongError](err); ok {
			id := long.id()
			c.session.guard.log("dropped a message of the server that is longer than 64 MiB (id: %.80s)", string(id))
			c.toClient(droppedAnswer(id, c.session.calls.take(id), "the server's answer is longer than 64 MiB, so agentshim dropped it; request less"))
			continue
		}
		if err != nil {
			return
		}
		c.handleServer(line)
	}
}

// handleServer passes on one line of the server. Other lines overtake results that wait for verdicts.
func (c *conn) handleServer(line []byte) {
	line, err := splitSafe(line)
	f := frame{raw: line}
	if err == nil {
		f, err = readServerFrame(line)
	}
	if err != nil {
		c.session.guard.log("dropped a line of the server: %v", err)
		for _, answer := range dropped(f.ids(), c.session.calls.take, fmt.Sprintf("agentshim dropped the server's answer: %v", err)) {
			c.toClient(answer)
		}
		return
	}
	pending, some := c.session.readServer(&f, c.session.calls.take)
	if !some {
		c.toClient(line)
		return
	}
	size := int64(len(line))
	if c.judged.Acquire(c.ctx, size) != nil { // the server waits at the limit
		return
	}
	c.judging.Go(func() {
		defer c.judged.Release(size)
		parts, onDelivered := c.session.judge(c.ctx, &f, pending)
		onDelivered(c.toClient(f.encode(parts)))
	})
}

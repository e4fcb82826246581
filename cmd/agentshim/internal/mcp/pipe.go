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

// lastCalls is how long calls that are being asked about may take to reach the
// server after the client has said its last.
const lastCalls = 5 * time.Second

// A Pipe is the proxy between a client and a server that speak in lines.
type Pipe struct {
	Guard *Guard
	// AskTimeout is how long a person may take to answer; 0: [DefaultAskTimeout].
	AskTimeout time.Duration
	// FromClient and ToClient are the client's ends.
	FromClient io.Reader
	ToClient   io.Writer
	// FromServer and ToServer are the server's. ToServer is closed after the
	// client's last message.
	FromServer io.Reader
	ToServer   io.WriteCloser
}

// Run passes messages on until the server has said its last, or ctx ends. The
// error says that the client cannot be told anything any more.
func (p *Pipe) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := newConn(ctx, p, p.ToServer, cancel)
	read := make(chan struct{})
	go func() { // ends with the client; at the latest with the process
		defer close(read)
		c.fromClient(p.FromClient)
		c.asking.wait(ctx, lastCalls)
		_ = p.ToServer.Close()
	}()
	c.fromServer(p.FromServer)
	c.calls.stop()
	c.looking.Wait()
	return context.Cause(ctx)
}

// A conn is one connection of a client to a server.
type conn struct {
	guard          *Guard
	peer           *peer
	calls          *table
	desk           *desk
	client, server *lineWriter
	life           context.Context
	gone           context.CancelCauseFunc
	asking         group          // about calls that the server has not seen
	looking        sync.WaitGroup // at results that the client has not seen
	sight          *semaphore.Weighted
}

// newConn is a connection that lives as long as life. gone ends that.
func newConn(life context.Context, p *Pipe, toServer io.Writer, gone context.CancelCauseFunc) *conn {
	c := &conn{
		guard: p.Guard, peer: newPeer(), calls: newTable(&room{most: maxBytes}), life: life, gone: gone, sight: semaphore.NewWeighted(maxBytes),
		client: &lineWriter{w: p.ToClient}, server: &lineWriter{w: toServer},
	}
	c.desk = newDesk(c.client, p.AskTimeout)
	return c
}

var errClientGone = errors.New("the client stopped reading")

// toClient writes to the client. When that fails there is nobody left to work for.
func (c *conn) toClient(line []byte) bool {
	if line == nil {
		return true
	}
	if err := c.client.line(line); err != nil {
		c.gone(errClientGone)
		return false
	}
	return true
}

// fromClient passes on what the client says, until its end.
func (c *conn) fromClient(r io.Reader) {
	in := bufio.NewReaderSize(r, glimpse)
	for {
		line, err := readLine(in)
		var long *tooLong
		switch {
		case errors.As(err, &long):
			c.guard.say("dropped a message of the client that is longer than 64 MiB")
			c.toClient(response(long.id(), "error", fault(-32600, "the message is longer than 64 MiB, so agentshim dropped it; send less at once")))
		case err != nil:
			return
		default:
			c.heard(line)
		}
	}
}

// heard passes on one line of the client.
func (c *conn) heard(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		c.toServer(line)
		return
	}
	all, batch, err := readMessages(line)
	if err != nil {
		c.guard.say("dropped a line of the client that is not a JSON-RPC message: %v", err)
		c.toClient(response(nil, "error", fault(-32700, "this is not a JSON-RPC message: "+err.Error())))
		return
	}
	rest, calls, changed := c.sort(all)
	switch {
	case len(calls) > 0:
		c.hold(line, batch, rest, calls, changed)
	case !changed:
		c.pass(line, all)
	case len(rest) > 0:
		c.pass(listOf(raws(rest)), rest)
	}
}

// sort takes out what is for the proxy, and tells calls from the rest. The calls
// are in the rest, too.
func (c *conn) sort(all []message) (rest []message, calls []*call, changed bool) {
	for _, m := range all {
		c.peer.hears(&m)
		switch {
		case m.response() && c.desk.answered(&m):
			changed = true
			continue
		case m.method == methodTaskResult:
			c.calls.resumed(&m)
		case m.method == methodCall:
			calls = append(calls, c.guard.newCall(m, c.peer))
		}
		rest = append(rest, m)
	}
	return rest, calls, changed
}

// pass gives to the server what is no call. What says that a call is cancelled
// which the server has not seen is not for it.
func (c *conn) pass(line []byte, all []message) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	kept := c.heed(all)
	switch {
	case len(kept) == len(all):
	case len(kept) == 0:
		return
	default:
		line = listOf(raws(kept))
	}
	_ = c.server.write(line) // a server that does not read has ended, or will
}

// heed ends what is cancelled, and leaves what the server has to hear of. The
// caller holds the server's lock, so that no call goes out meanwhile.
func (c *conn) heed(all []message) []message {
	kept := all[:0:0]
	for _, m := range all {
		if m.method == methodCancelled {
			params := m.inner("params")
			if !c.calls.cancelled(params.get("requestId")) {
				continue
			}
		}
		kept = append(kept, m)
	}
	return kept
}

func (c *conn) toServer(line []byte) { _ = c.server.line(line) }

func raws(all []message) []jsontext.Value {
	values := make([]jsontext.Value, len(all))
	for i := range all {
		values[i] = all[i].raw
	}
	return values
}

// fromServer passes on what the server says, until its end.
func (c *conn) fromServer(r io.Reader) {
	in := bufio.NewReaderSize(r, glimpse)
	for {
		line, err := readLine(in)
		var long *tooLong
		switch {
		case errors.As(err, &long):
			c.longAnswer(long)
		case err != nil:
			return
		default:
			if !c.said(line) {
				return
			}
		}
	}
}

// longAnswer says in the place of an answer that it is too long, so that nobody
// waits for it.
func (c *conn) longAnswer(long *tooLong) {
	id := long.id()
	c.guard.say("dropped a message of the server that is longer than 64 MiB (id: %.80s)", string(id))
	c.toClient(withheld(id, c.calls.answered(id), "the server's answer is longer than 64 MiB, so agentshim dropped it; request less"))
}

// withhold says in the place of what the server said that nobody can tell what
// clients would read there.
func (c *conn) withhold(line []byte, all []message, why error) {
	c.guard.say("dropped a line of the server: %v", why)
	for _, answer := range instead(idsOf(line, all), c.calls.answered, fmt.Sprintf("agentshim dropped the server's answer: %v", why)) {
		c.toClient(answer)
	}
}

// said passes on one line of the server; false: nobody hears it.
func (c *conn) said(line []byte) bool {
	line, err := oneLine(line)
	if err != nil {
		c.withhold(line, nil, err)
		return c.life.Err() == nil
	}
	all, batch, err := readAnswers(line)
	if err != nil {
		c.withhold(line, all, err)
		return c.life.Err() == nil
	}
	if len(all) == 0 {
		return c.toClient(line) // the client knows best what to make of it
	}
	answered := make([]*entry, len(all))
	some := false
	for i := range all {
		m := &all[i]
		c.peer.heard(m)
		if m.response() {
			answered[i] = c.calls.answered(m.id)
			some = some || answered[i] != nil
		}
	}
	if !some {
		return c.toClient(line)
	}
	size := int64(len(line))
	if c.sight.Acquire(c.life, size) != nil { // the server waits until some are looked at
		return false
	}
	c.looking.Go(func() {
		defer c.sight.Release(size)
		c.look(line, batch, all, answered)
	})
	return c.life.Err() == nil
}

// look has the results in a line looked at, and gives it to the client.
func (c *conn) look(line []byte, batch bool, all []message, answered []*entry) {
	parts := raws(all)
	var all2 []func(bool)
	changed := false
	for i, e := range answered {
		if e == nil {
			continue
		}
		m := &all[i]
		c.calls.task(e.call, m)
		out, told := c.guard.after(c.life, e.call, m, c.calls.isOver(e))
		all2 = append(all2, told)
		if !bytes.Equal(out, m.raw) {
			parts[i], changed = out, true
		}
	}
	if changed {
		line = parts[0]
		if batch {
			line = listOf(parts)
		}
	}
	ok := c.toClient(line)
	for _, told := range all2 {
		told(ok)
	}
}

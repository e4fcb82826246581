package mcp

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// hold keeps a line back while its calls are asked about. Other lines pass it.
func (c *conn) hold(line []byte, batch bool, rest []message, calls []*call, changed bool) {
	entries := make([]*entry, len(calls))
	for i, one := range calls {
		size := len(one.raw)
		if i == 0 {
			size = len(line) // which is kept with them
		}
		entries[i] = c.calls.add(c.life, one, size)
	}
	kept := rest
	if len(rest) > len(calls) { // else there is nothing in it to wait for the server
		c.server.mu.Lock()
		kept = c.heed(rest)
		c.server.mu.Unlock()
		changed = changed || len(kept) < len(rest)
	}
	c.asking.do(func() {
		rulings := make([]ruling, len(calls))
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() { rulings[i] = c.rule(calls[i], entries[i]) })
		}
		all.Wait()
		c.ruled(line, batch, kept, entries, rulings, changed)
		for _, e := range entries {
			if e != nil {
				e.cancel()
			}
		}
	})
}

// rule is what becomes of one call, a person's word included.
func (c *conn) rule(one *call, e *entry) ruling {
	if e == nil {
		return c.guard.refused(one, "too many calls are under way; wait for answers before you make more calls")
	}
	ctx := e.asking
	if r, ok := c.guard.resumed(one); ok {
		return r
	}
	r := c.guard.before(ctx, one)
	if r.ask == "" || ctx.Err() != nil {
		return r
	}
	if one.modern {
		return c.guard.inputRequired(one, r)
	}
	if approved, why := c.desk.ask(ctx, one, r.ask); !approved {
		return c.guard.refused(one, why)
	}
	return r
}

// ruled passes on what is left of a line, and answers what is not.
func (c *conn) ruled(line []byte, batch bool, rest []message, entries []*entry, rulings []ruling, changed bool) {
	var forward, answers [][]byte
	c.server.mu.Lock()
	n := 0
	for _, m := range rest {
		if m.method != methodCall {
			forward = append(forward, m.raw)
			continue
		}
		e, r := entries[n], rulings[n]
		n++
		switch {
		case e == nil:
		case r.forward == nil:
			c.calls.remove(e)
			if c.calls.isOver(e) {
				r.answer = nil
			}
		case c.calls.send(e):
			changed = changed || !bytes.Equal(r.forward, m.raw)
			forward = append(forward, r.forward)
			continue
		default: // cancelled: nobody waits for an answer
			r.answer = nil
		}
		changed = true
		if r.answer != nil {
			answers = append(answers, r.answer)
		}
	}
	c.send(line, batch, forward, changed)
	c.server.mu.Unlock()
	if len(answers) > 0 {
		c.toClient(together(answers, batch))
	}
}

// send gives to the server what is left of a line. The caller holds the lock.
func (c *conn) send(line []byte, batch bool, forward [][]byte, changed bool) {
	switch {
	case len(forward) == 0:
	case changed:
		_ = c.server.write(together(forward, batch))
	default:
		_ = c.server.write(line)
	}
}

// together are messages as one line; several only ever came as a list.
func together(all [][]byte, batch bool) []byte {
	if !batch {
		return all[0]
	}
	out := []byte{'['}
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return append(out, ']')
}

// A group is work under way that is waited for, but not for ever.
type group struct{ sync.WaitGroup }

func (g *group) do(f func()) { g.Go(f) }

// wait waits until the work is done, but no longer than that, or than ctx.
func (g *group) wait(ctx context.Context, most time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Wait()
	}()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
}

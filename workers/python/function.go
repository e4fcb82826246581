package python

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/hookfabric/hookfabric/schema"
)

// function is a function that one or more hooks call.
type function struct {
	number  uint32
	handler string
	async   atomic.Bool
	blocks  atomic.Bool // it has blocked its event loop
	users   int         // guarded by pool.mu
}

// load returns the function that handler names. A host imports it, unless one already did.
func (p *pool) load(handler string) (*function, error) {
	p.mu.Lock()
	for _, f := range p.functions {
		if f.handler == handler {
			f.users++
			p.mu.Unlock()
			return f, nil
		}
	}
	p.numbers++
	f := &function{number: p.numbers, handler: handler, users: 1}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), p.runner.wait.loading)
	defer cancel()
	if err := p.importFunction(ctx, f); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.functions = append(p.functions, f)
	p.importInIdleHosts()
	return f, nil
}

// importFunction lets a host import f. If the host ended before, it tries another one.
func (p *pool) importFunction(ctx context.Context, f *function) error {
	for try := 1; ; try++ {
		c := &call{function: f, alone: true}
		h, err := p.take(ctx, c)
		if err != nil {
			return err
		}
		err = h.load(ctx, f)
		p.give(h, c)
		if lost, ok := errors.AsType[*lostError](err); !ok || lost.sent || try == tries {
			return err
		}
	}
}

// forget removes one user of f.
func (p *pool) forget(f *function) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.users--; f.users == 0 {
		p.functions = slices.DeleteFunc(p.functions, func(g *function) bool { return g == f })
	}
}

// importInIdleHosts lets idle hosts import functions that they lack, so that calls do not wait for
// imports.
func (p *pool) importInIdleHosts() {
	for _, h := range p.hosts {
		if p.closed || !h.idle() || len(h.missing(p.functions)) == 0 {
			continue
		}
		h.alone = true
		fs := h.missing(p.functions)
		p.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), p.runner.wait.loading)
			defer cancel()
			for _, f := range fs {
				if h.load(ctx, f) != nil {
					break // a call of the function reports the error
				}
			}
			p.give(h, &call{alone: true})
		})
	}
}

// missing returns the functions that s has not imported.
func (s *seat) missing(fs []*function) (unknown []*function) {
	for _, f := range fs {
		if !s.knows[f.number] {
			unknown = append(unknown, f)
		}
	}
	return unknown
}

func (p *pool) knows(h *host, f *function) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.knows[f.number]
}

// load lets h import f. The caller must have h to itself.
func (h *host) load(ctx context.Context, f *function) error {
	body, err := schema.Marshal(loading{f.number, f.handler})
	if err != nil {
		return err
	}
	a, err := h.ask(ctx, body, errors.New("the import of its module did not end in time"))
	if a.Traceback != "" {
		h.pool.runner.log.Warn("hook function cannot be imported", "handler", f.handler, "traceback", a.Traceback)
	}
	if a.Raised {
		return errors.New(a.Error)
	}
	if err == nil {
		h.pool.setImported(h, f, a.Async)
	}
	return err
}

func (p *pool) setImported(h *host, f *function, async bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.knows[f.number] = true
	f.async.Store(async)
}

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
)

// handler is a hook whose server can be asked.
type handler struct {
	runner     *Runner
	hook       string // the hook's name
	idempotent bool
	url        string
	name       string // the URL without secrets
	header     http.Header
	key        []byte // nil: requests are not signed
	tidy       tidy
	pool       pool
}

// Handle sends the request.
func (h *handler) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	r := h.runner
	r.calls.RLock()
	defer r.calls.RUnlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.life, func() { cancel(errClosed) })()
	for _, c := range []context.Context{ctx, r.life} {
		if c.Err() != nil {
			return schema.Result{}, fmt.Errorf("%s got no request: %w", h.name, context.Cause(c))
		}
	}
	req, err := h.request(ctx, e)
	if err != nil {
		return schema.Result{}, err
	}
	resp, err := h.pool.RoundTrip(req)
	if err != nil {
		return schema.Result{}, h.lost(ctx, "could not be asked", err)
	}
	defer resp.Body.Close()
	return h.judge(ctx, e.HookType, resp)
}

// Close closes the connections of the hook, after its last call.
func (h *handler) Close() error {
	h.pool.close()
	return nil
}

// lost returns the error of a call that was cancelled or lost in the network.
func (h *handler) lost(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not answer before the call ended: %w", h.name, context.Cause(ctx))
	}
	return fmt.Errorf("%s %s: %s", h.name, what, h.tidy.line(err.Error()))
}

// alwaysThere is the size of members that a request has and the event may not have.
const alwaysThere = 128

// request makes the request about e.
func (h *handler) request(ctx context.Context, e *schema.Event) (*http.Request, error) {
	in, err := workers.NewInput(e)
	var body []byte
	if err == nil {
		body, err = schema.Marshal(in)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the event as JSON: %w", err)
	}
	if most := schema.MaxEvent + alwaysThere + len(e.History); len(body) > most { // the history has a limit of its own
		return nil, fmt.Errorf("the event has %d bytes; the limit is %d for %s", len(body), most, h.name)
	}
	once := &once{body: body, idempotent: h.idempotent}
	req, err := http.NewRequestWithContext(once.traced(ctx), http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be asked: %w", h.name, err)
	}
	req.GetBody = once.again
	req.Header = h.header.Clone()
	req.Header[schema.HeaderID] = []string{e.EventID}
	req.Header[schema.HeaderEvent] = []string{string(e.HookType)}
	if c := trace.From(ctx); c != nil {
		req.Header.Set(schema.HeaderTraceparent, c.Parent())
		if c.State != "" {
			req.Header.Set(schema.HeaderTracestate, c.State)
		}
	}
	if h.key != nil {
		sign(req.Header, body, h.key, time.Now())
	}
	return req, nil
}

// once keeps net/http from sending a request twice when a kept connection was closed.
// Over HTTP/1.1, net/http resends a POST without an Idempotency-Key only if no byte was
// written. Over HTTP/2, it also resends up to six times when the server reports that it
// did not process the request, but it misreads some errors of servers that did. So over
// HTTP/2 only requests of idempotent hooks are resent, and only once.
type once struct {
	body       []byte
	idempotent bool
	http2      atomic.Bool // the latest connection uses HTTP/2
	sent       atomic.Bool // the latest attempt's headers were sent over HTTP/2
	repeated   bool
}

var errSent = errors.New("the server closed the connection or rejected the request after the worker had sent it; the hook is not idempotent, or the worker has already sent the request again")

// traced returns ctx with callbacks that record what was sent.
func (o *once) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			conn, ok := got.Conn.(*tls.Conn)
			o.http2.Store(ok && conn.ConnectionState().NegotiatedProtocol == "h2")
		},
		WroteHeaders: func() {
			if o.http2.Load() {
				o.sent.Store(true)
			}
		},
	})
}

// again returns the body for another attempt, or the error why there must not be one.
func (o *once) again() (io.ReadCloser, error) {
	if o.sent.Load() {
		if !o.idempotent || o.repeated {
			return nil, errSent
		}
		o.repeated = true
		o.sent.Store(false) // the next attempt may use a new connection
	}
	return io.NopCloser(bytes.NewReader(o.body)), nil
}

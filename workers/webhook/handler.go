package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync"
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

// Options configure a [Runner].
type Options struct {
	// Logger is the log; nil means slog.Default. It gets a warning for each hook that sends
	// unencrypted events.
	Logger *slog.Logger
	// Environ is the worker's environment in the form of os.Environ; nil means os.Environ.
	Environ []string
}

// A Runner sends events to servers. It is safe for concurrent use.
type Runner struct {
	log     *slog.Logger
	environ []string

	calls sync.RWMutex    // calls hold it for reading; Close waits by locking it
	life  context.Context // ends when Close begins, and ends calls
	end   context.CancelCauseFunc
	open  context.Context // ends when the last call has returned, and closes connections
	shut  context.CancelFunc
}

var _ workers.Runner = (*Runner)(nil)

// errClosed is the error of calls during and after Close.
var errClosed = errors.New("the worker is stopping")

// New returns a Runner. It opens no connection before the first call.
func New(opt Options) *Runner {
	r := &Runner{log: cmp.Or(opt.Logger, slog.Default()), environ: opt.Environ}
	if r.environ == nil {
		r.environ = os.Environ()
	}
	r.life, r.end = context.WithCancelCause(context.Background())
	r.open, r.shut = context.WithCancel(context.Background())
	return r
}

// Load reads everything that a request of h needs. It does not contact the server,
// because a server that is down for a moment must not deny all calls.
func (r *Runner) Load(h schema.Hook, at workers.Site) (workers.Handler, error) {
	if h.Shell || len(h.Args) > 0 || len(h.Env) > 0 || len(h.Options) > 0 {
		return nil, errors.New("shell, args, env and options are not for http hooks; write these values into the URL or into headers, where ${NAME} stands for a variable")
	}
	target, err := parse(h.Handler)
	if err != nil {
		return nil, err
	}
	vars := variables{environ: r.environ}
	header, err := vars.header(h.Headers)
	if err != nil {
		return nil, err
	}
	key, err := vars.key(h.Sign)
	if err != nil {
		return nil, err
	}
	if err := r.checkPlain(h, target, len(vars.secrets) > 0); err != nil {
		return nil, err
	}
	config, err := files(at.Dirs).config(h.TLS)
	if err != nil {
		return nil, err
	}
	return &handler{
		runner: r, hook: h.Name, idempotent: h.Idempotent, url: target.String(), name: bare(target),
		header: header, key: key, tidy: newTidy(vars.secrets), pool: newPool(r.open, config),
	}, nil
}

// checkPlain checks a hook with a plain http URL.
func (r *Runner) checkPlain(h schema.Hook, target *url.URL, secrets bool) error {
	switch {
	case target.Scheme == "https":
		return nil
	case h.TLS != schema.TLS{}:
		return fmt.Errorf("the hook has tls, but %s begins with http://; write https://, or remove tls", bare(target))
	case isLoopback(target.Hostname()):
		return nil
	case secrets:
		return fmt.Errorf("the hook's secrets (sign, or ${…} in headers) would travel unencrypted to %s; write https:// in its handler", bare(target))
	}
	r.log.Warn("events travel unencrypted to another machine; write https:// in the hook's handler", "hook", h.Name, "host", target.Host)
	return nil
}

// Close cancels the calls in progress, waits for them, and closes all connections. Later
// calls fail.
func (r *Runner) Close() error {
	r.end(errClosed)
	r.calls.Lock()
	defer r.calls.Unlock()
	r.shut()
	return nil
}

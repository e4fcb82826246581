package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

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

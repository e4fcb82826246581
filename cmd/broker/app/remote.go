package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// askTime is how long an operator's question may take.
const askTime = 5 * time.Second

// slowAfter is when whoever waits for an answer is told so.
const slowAfter = time.Second

// remote is where an operator's command finds the fabric.
type remote struct {
	url, creds string
	tls        certs.Files
	// wait is how long an answer may take; 0: askTime.
	wait time.Duration
	// slow is called once when an answer takes long; nil: nobody is told.
	slow func()
	// refuse ends what is under way when the bus does not permit it; nil: nothing is.
	refuse atomic.Pointer[context.CancelCauseFunc]
}

func (r *remote) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "nats", nats.DefaultURL, "URL of the fabric's NATS server")
	c.Flags().StringVar(&r.creds, "creds", "", "credentials file (default: connect without credentials)")
	program.TLSFlags(c.Flags(), &r.tls)
}

// patient adds the flag by which whoever asks says how long to wait for an
// answer, to a command that has no PreRunE of its own.
func (r *remote) patient(c *cobra.Command) {
	program.DurationVar(c.Flags(), &r.wait, "timeout", askTime, "wait at most this long for the answer of a broker")
	c.PreRunE = func(*cobra.Command, []string) error {
		if r.wait <= 0 {
			return program.UsageError("--timeout is %s; use a duration above zero", r.wait)
		}
		return nil
	}
}

// ask makes one control request on a connection of its own, and decodes its
// answer. An empty agent is nobody in particular.
func (r *remote) ask(ctx context.Context, verb, agent string, req, answer any) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	nc, err := r.connect(ctx, verb)
	if err != nil {
		return err
	}
	defer nc.Close()
	return r.askOn(ctx, nc, about{verb, agent}, req, answer)
}

// about is what a control request is about: its subject.
type about struct{ verb, agent string }

// another is how long a broker may take before another one is asked; 0: one is. To say
// something twice under its key does no harm.
func (w about) another() time.Duration {
	switch w.verb {
	case schema.VerbInject, schema.VerbPending, "status":
		return insistAfter
	}
	return 0
}

// connect connects to the fabric's NATS. The verb is why, for operators.
func (r *remote) connect(ctx context.Context, verb string) (*nats.Conn, error) {
	return bus.Connect(ctx, bus.Options{URL: r.url, Creds: r.creds, TLS: r.tls, Name: "broker-" + verb, OnDenied: func(err error) {
		if refuse := r.refuse.Load(); refuse != nil {
			(*refuse)(&notPermitted{creds: r.creds, err: err})
		}
	}})
}

// heeding is a context that ends when the bus does not permit what is done in it: it
// would not be answered.
func (r *remote) heeding(ctx context.Context) (context.Context, func()) {
	ctx, refuse := context.WithCancelCause(ctx)
	r.refuse.Store(&refuse)
	return ctx, func() {
		r.refuse.Store(nil)
		refuse(nil)
	}
}

// A notPermitted is what the bus does not let these credentials do.
type notPermitted struct {
	creds string
	err   error
}

func (e *notPermitted) Error() string {
	return fmt.Sprintf("the credentials in %s do not permit this: %v; use an operator's, which `broker creds add operator NAME` makes", e.creds, e.err)
}
func (e *notPermitted) Unwrap() error { return e.err }

// denied is that the bus did not permit what was done in ctx; nil: it was permitted.
func denied(ctx context.Context) error {
	if e, ok := errors.AsType[*notPermitted](context.Cause(ctx)); ok {
		return e
	}
	return nil
}

// askOn is ask on a connection that is there.
func (r *remote) askOn(ctx context.Context, nc *nats.Conn, what about, req, answer any) error {
	subject, err := bus.ControlSubject(what.verb, what.agent)
	if err != nil {
		return err
	}
	body, err := schema.Marshal(req)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	return r.request(ctx, nc, &nats.Msg{Subject: subject, Data: body}, what.another(), answer)
}

// bounded gives a request its time.
func (r *remote) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := cmp.Or(r.wait, askTime)
	return context.WithTimeoutCause(ctx, wait, fmt.Errorf("no answer came within %s", wait))
}

// request is control on a connection.
func (r *remote) request(ctx context.Context, nc *nats.Conn, msg *nats.Msg, another time.Duration, answer any) error {
	if most := nc.MaxPayload(); int64(len(msg.Data)) > most {
		return fmt.Errorf("the request has %d bytes, and the NATS server at %s takes at most %d in one message; raise its max_payload",
			len(msg.Data), bus.RedactURL(r.url), most)
	}
	ctx, heeded := r.heeding(ctx)
	defer heeded()
	m, err := r.patiently(func() (*nats.Msg, error) { return bus.Request(ctx, nc, msg, another) })
	if err != nil {
		if refused := denied(ctx); refused != nil {
			return refused
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &noAnswer{where: bus.RedactURL(r.url), err: err}
	}
	if err := bus.Refusal(m); err != nil {
		return err
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("cannot decode the broker's answer: %w", err)
	}
	return nil
}

// patiently waits for an answer, and says so when it takes long.
func (r *remote) patiently(ask func() (*nats.Msg, error)) (m *nats.Msg, err error) {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		m, err = ask()
	}()
	if r.slow != nil {
		select {
		case <-answered:
		case <-time.After(slowAfter):
			r.slow()
		}
	}
	<-answered
	return m, err
}

// A noAnswer is a request that nobody answered.
type noAnswer struct {
	where string
	err   error
}

func (e *noAnswer) Error() string { return fmt.Sprintf("no broker answers at %s: %v", e.where, e.err) }
func (e *noAnswer) Unwrap() error { return e.err }

// received reports whether some broker may have got the request all the same.
func (e *noAnswer) received() bool { return !errors.Is(e.err, nats.ErrNoResponders) }

// printJSON prints an answer for programs.
func printJSON(w io.Writer, answer any) error {
	data, err := schema.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	_, err = fmt.Fprintln(w, string(schema.VisibleJSON(data)))
	return err
}

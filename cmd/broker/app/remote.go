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
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// askTime is the default time limit of a request.
const askTime = 5 * time.Second

// troubleTime bounds a request for the broker's trouble, and is the interval of such requests.
const troubleTime = 2 * time.Second

// storeSoon is how long it takes to store a long text, at most, if the store works.
const storeSoon = 10 * time.Second

// slowAfter is when a command reports that it still waits for an answer.
const slowAfter = time.Second

// remote connects an operator's command to the fabric.
type remote struct {
	url, creds string
	tls        certs.Files
	// wait bounds the wait for an answer; 0: askTime.
	wait time.Duration
	// slow is called once if an answer takes longer than slowAfter; nil: no call.
	slow func()
	// refuse ends the request in progress when the bus denies it; nil: no request is in progress.
	refuse atomic.Pointer[context.CancelCauseFunc]
}

func (r *remote) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "nats", nats.DefaultURL, "URL of the fabric's NATS server")
	c.Flags().StringVar(&r.creds, "creds", "", "credentials file (default: connect without credentials)")
	program.TLSFlags(c.Flags(), &r.tls)
}

// timeoutFlag adds --timeout to a command that has no PreRunE of its own.
func (r *remote) timeoutFlag(c *cobra.Command) {
	program.DurationVar(c.Flags(), &r.wait, "timeout", askTime, "wait at most this long for the answer of a broker")
	c.PreRunE = func(*cobra.Command, []string) error {
		if r.wait <= 0 {
			return program.UsageError("--timeout is %s; use a duration above zero", r.wait)
		}
		return nil
	}
}

// ask makes one control request on a connection of its own, and decodes the answer. An empty agent
// means no single agent.
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

// about identifies the subject of a control request.
type about struct{ verb, agent string }

// another is how long a broker may take before another one gets the request, too; 0: no other
// one gets it. It is only for requests that may be served twice.
func (w about) another() time.Duration {
	switch w.verb {
	case schema.VerbInject, schema.VerbPending, schema.VerbStatus:
		return insistAfter
	}
	return 0
}

// connect connects to the fabric's NATS; the connection's name contains the verb.
func (r *remote) connect(ctx context.Context, verb string) (*nats.Conn, error) {
	return bus.Connect(ctx, bus.Options{URL: r.url, Creds: r.creds, TLS: r.tls, Name: "broker-" + verb, OnDenied: func(err error) {
		if refuse := r.refuse.Load(); refuse != nil {
			(*refuse)(&notPermitted{creds: r.creds, err: err})
		}
	}})
}

// untilDenied returns a context that ends when the bus denies an operation, because no answer will
// come, and a function that releases it.
func (r *remote) untilDenied(ctx context.Context) (context.Context, func()) {
	ctx, refuse := context.WithCancelCause(ctx)
	r.refuse.Store(&refuse)
	return ctx, func() {
		r.refuse.Store(nil)
		refuse(nil)
	}
}

// A notPermitted is the error of an operation that the bus denied.
type notPermitted struct {
	creds string
	err   error
}

func (e *notPermitted) Error() string {
	return fmt.Sprintf("the credentials in %s do not permit this: %v; use an operator's, which `broker creds add operator NAME` makes", e.creds, e.err)
}
func (e *notPermitted) Unwrap() error { return e.err }

// denied returns the error of an operation in ctx that the bus denied; nil: it denied none.
func denied(ctx context.Context) error {
	if e, ok := errors.AsType[*notPermitted](context.Cause(ctx)); ok {
		return e
	}
	return nil
}

// askOn is ask on an open connection.
func (r *remote) askOn(ctx context.Context, nc *nats.Conn, what about, req, answer any) error {
	subject, err := bus.ControlSubject(what.verb, what.agent)
	if err != nil {
		return err
	}
	body, err := schema.Marshal(req)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	err = r.request(ctx, nc, &nats.Msg{Subject: subject, Data: body}, what.another(), answer)
	if silent, ok := errors.AsType[*noAnswer](err); ok && silent.received() && what.verb != schema.VerbStatus && !errors.Is(ctx.Err(), context.Canceled) {
		if why := r.trouble(ctx, nc); why != "" {
			return fmt.Errorf("%w; the broker reports: %s", err, why)
		}
	}
	return err
}

// trouble returns why a broker cannot do all of its work; empty: it can, or does not answer.
func (r *remote) trouble(ctx context.Context, nc *nats.Conn) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), troubleTime)
	defer cancel()
	var st schema.FabricStatus
	subject, err := bus.ControlSubject(schema.VerbStatus, "")
	if err != nil {
		return ""
	}
	if err := bus.Ask(ctx, nc, subject, schema.StatusRequest{}, &st); err != nil {
		return ""
	}
	return st.Trouble
}

// untilTrouble returns a context that ends when something takes longer than storeSoon and the broker
// reports that it cannot do all of its work, and a function that releases it. JetStream does not
// answer writes on a full disk.
func (r *remote) untilTrouble(ctx context.Context, nc *nats.Conn) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for wait := storeSoon; kv.Rest(ctx, wait) == nil; wait = troubleTime {
			if why := r.trouble(ctx, nc); why != "" {
				cancel(errors.New(why))
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// bounded adds the time limit of a request.
func (r *remote) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := cmp.Or(r.wait, askTime)
	return context.WithTimeoutCause(ctx, wait, fmt.Errorf("no answer came within %s", wait))
}

// request sends a request and decodes the answer.
func (r *remote) request(ctx context.Context, nc *nats.Conn, msg *nats.Msg, another time.Duration, answer any) error {
	if most := nc.MaxPayload(); int64(len(msg.Data)) > most {
		return fmt.Errorf("the request has %d bytes, and the NATS server at %s takes at most %d in one message; raise its max_payload",
			len(msg.Data), bus.RedactURL(r.url), most)
	}
	ctx, release := r.untilDenied(ctx)
	defer release()
	m, err := r.reportSlow(func() (*nats.Msg, error) { return bus.Request(ctx, nc, msg, another) })
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

// reportSlow waits for an answer, and calls slow if it takes long.
func (r *remote) reportSlow(ask func() (*nats.Msg, error)) (m *nats.Msg, err error) {
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

// A noAnswer is the error of a request without an answer.
type noAnswer struct {
	where string
	err   error
}

func (e *noAnswer) Error() string { return fmt.Sprintf("no broker answers at %s: %v", e.where, e.err) }
func (e *noAnswer) Unwrap() error { return e.err }

// received reports whether a broker may have received the request.
func (e *noAnswer) received() bool { return !errors.Is(e.err, nats.ErrNoResponders) }

// printJSON prints an answer as JSON.
func printJSON(w io.Writer, answer any) error {
	data, err := schema.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	_, err = fmt.Fprintln(w, string(schema.VisibleJSON(data)))
	return err
}

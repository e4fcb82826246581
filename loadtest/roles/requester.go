package roles

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// A Way is one way of asking for a verdict.
type Way string

// The ways. The names are the first words of the report's rows.
const (
	Raw          Way = "raw"
	InsideServer Way = "inside"
	Relayed      Way = "relayed"
	Fabric       Way = "fabric"
	Hook         Way = "webhook"
	TwoStages    Way = "two-stages"
	Command      Way = "command"
)

// A Target says what to ask, in which way, and what the answer must be.
type Target struct {
	Way Way `json:"way"`
	// Tool is the event's tool, which selects the hooks of the fabric.
	Tool string `json:"tool,omitzero"`
	// Hooks is how many hooks must have allowed; 0: no hook judges the event.
	Hooks int `json:"hooks"`
	// Query runs a whole query instead of one question; nil: one question.
	Query *Query `json:"query,omitzero"`
}

// Places are the addresses of the responders; empty: that way is not measured.
type Places struct {
	NATS    string `json:"nats,omitzero"`
	Inside  string `json:"inside,omitzero"`
	Fabric  string `json:"fabric,omitzero"`
	Webhook string `json:"webhook,omitzero"`
	Stages  string `json:"stages,omitzero"`
}

// A Request asks the requester to measure. If Window has no callers, the requester only
// waits until the target answers correctly.
type Request struct {
	Target Target         `json:"target"`
	Window measure.Window `json:"window"`
}

// ask asks once for a verdict of the given number of hooks.
type ask func(ctx context.Context, e *schema.Event, hooks int) (*schema.Verdict, error)

// requester has one connection of each kind, for any number of callers.
type requester struct {
	asks    map[Way]ask
	fabric  *client.Client // nil: no address is configured
	closers []func() error
}

func startRequester(ctx context.Context, at Places) (*proc.Role, error) {
	r := &requester{asks: map[Way]ask{}}
	if err := r.open(ctx, at); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &proc.Role{Do: r.do, Close: r.close}, nil
}

func (r *requester) open(ctx context.Context, at Places) error {
	if at.NATS != "" {
		nc, err := connect(at.NATS, "loadtest "+Requester)
		if err != nil {
			return err
		}
		r.closers = append(r.closers, closing(nc))
		r.asks[Raw] = rawAsk(nc, rawSubject)
	}
	if at.Inside != "" {
		nc, err := connect(at.Inside, "loadtest "+Requester)
		if err != nil {
			return err
		}
		r.closers = append(r.closers, closing(nc))
		r.asks[InsideServer], r.asks[Relayed] = rawAsk(nc, insideSubject), rawAsk(nc, relaySubject)
	}
	if at.Fabric != "" {
		c, err := client.Connect(ctx, client.Options{URL: at.Fabric, Name: "loadtest " + Requester})
		if err != nil {
			return fmt.Errorf("connecting to the fabric at %s: %w", at.Fabric, err)
		}
		r.closers = append(r.closers, func() error { c.Close(); return nil })
		r.fabric, r.asks[Fabric] = c, fabricAsk(c)
	}
	c := keepAlive()
	r.asks[Hook] = httpAsk(c, at.Webhook)
	r.asks[TwoStages] = httpAsk(c, at.Stages)
	program, err := exec.LookPath("true")
	if err != nil {
		return fmt.Errorf("looking for a tiny program to spawn: %w", err)
	}
	r.asks[Command] = commandAsk(program)
	return nil
}

func (r *requester) close() error {
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (r *requester) do(ctx context.Context, line []byte) (any, error) {
	var q Request
	if err := schema.Unmarshal(line, &q); err != nil {
		return nil, fmt.Errorf("the request to measure: %w", err)
	}
	call, err := r.call(ctx, q.Target)
	if err != nil {
		return nil, err
	}
	if q.Window.Callers == 0 {
		return nil, await(ctx, call)
	}
	return measure.Run(ctx, q.Window, call)
}

// call returns a function that makes one call of t: it sends a fresh event and checks the
// verdict.
func (r *requester) call(ctx context.Context, t Target) (measure.Call, error) {
	via := r.asks[t.Way]
	if via == nil {
		return nil, fmt.Errorf("the requester has no target for the way %q", t.Way)
	}
	switch {
	case t.Query != nil && t.Way == Fabric:
		return t.Query.byLoop(r.fabric), nil
	case t.Query != nil:
		return t.Query.byHand(ctx, via)
	}
	s, err := newSample(t.Tool)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		e, err := s.event()
		if err != nil {
			return err
		}
		v, err := via(ctx, e, t.Hooks)
		if err != nil {
			return err
		}
		return check(v, t.Hooks)
	}, nil
}

// await calls until the answer is right, so that measuring begins when all roles are
// connected. If it gives up, it returns the last error.
func await(ctx context.Context, call measure.Call) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("no right answer within 20 s"))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := call(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

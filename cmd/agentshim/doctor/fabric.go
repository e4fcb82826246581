package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/kept"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// reachTime is how long the bus may take, and the daemon.
	reachTime = 5 * time.Second
	// feedTime is how long a verdict's record may take after the verdict.
	feedTime = 2 * time.Second
)

// A fabric is the bus as the doctor sees it; a nil connection: it is not there.
type fabric struct {
	nc   *nats.Conn
	feed *nats.Subscription
}

func (f *fabric) close() {
	if f.nc != nil {
		f.nc.Close()
	}
}

// reach asks the fabric what it says of itself and of this host.
func reach(ctx context.Context, o *Options, r *Report) *fabric {
	r.Bus.URL = bus.RedactURL(o.NATS)
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	f := &fabric{}
	began := time.Now()
	st, err := f.status(ctx, o)
	if err != nil {
		r.Bus.Why = err.Error()
		f.close()
		return &fabric{}
	}
	r.Bus.Took = took(time.Since(began))
	r.Bus.Reached, r.Bus.Fabric, r.Bus.ConfigVersion, r.Bus.Hooks = true, st.Fabric, st.ConfigVersion, st.Hooks
	r.Agents = st.Agents
	return f
}

// status connects, and listens to what is said of the doctor's own calls.
func (f *fabric) status(ctx context.Context, o *Options) (st schema.FabricStatus, err error) {
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	f.nc, err = bus.Connect(ctx, bus.Options{URL: o.NATS, Creds: o.Creds, TLS: o.TLS, Role: "operator", Name: "agentshim-doctor", OnDenied: func(err error) {
		refuse(fmt.Errorf("the credentials in %s do not permit to ask what the fabric says of itself, so that this is not known: %w; "+
			"an operator's do, which `broker creds add operator NAME` makes: name them with --creds", o.Creds, err))
	}})
	if err != nil {
		return st, err
	}
	feed, err := bus.FeedSubject(Agent)
	if err != nil {
		return st, err
	}
	if f.feed, err = f.nc.SubscribeSync(feed); err != nil {
		return st, err
	}
	subject, err := bus.ControlSubject("status", "")
	if err != nil {
		return st, err
	}
	body, err := schema.Marshal(schema.StatusRequest{Agents: true, Host: hostname()})
	if err != nil {
		return st, err
	}
	m, err := f.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return st, errors.New("the bus is there, but no broker is; start one, or ask who runs it")
	case err != nil && errors.Is(context.Cause(ctx), nats.ErrPermissionViolation):
		return st, context.Cause(ctx)
	case err != nil:
		return st, fmt.Errorf("no broker answers: %w", err)
	case m.Header.Get(schema.HeaderServiceError) != "":
		return st, fmt.Errorf("the broker says: %s", m.Header.Get(schema.HeaderServiceError))
	}
	if err := schema.Unmarshal(m.Data, &st); err != nil {
		return st, fmt.Errorf("the broker's answer can not be read: %w", err)
	}
	if st.Trouble != "" {
		return st, fmt.Errorf("the broker is in trouble: %s", st.Trouble)
	}
	return st, nil
}

// judged reports whether the fabric says that it judged a call of that session.
func (f *fabric) judged(ctx context.Context, session string) bool {
	if f.feed == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, feedTime)
	defer cancel()
	for {
		m, err := f.feed.NextMsgWithContext(ctx)
		if err != nil {
			return false
		}
		var r schema.Record
		if schema.Unmarshal(m.Data, &r) == nil && r.Session == session {
			return true
		}
	}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func daemonState(ctx context.Context, o *Options) Daemon {
	d := Daemon{Socket: o.Socket}
	if o.Socket == "" {
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	st, err := daemon.Ask(ctx, o.Socket)
	if err != nil {
		d.Why = err.Error()
		return d
	}
	d.Running, d.Calls = true, st.Calls
	return d
}

// policyState is what shims know for when nobody can be reached.
func policyState(o *Options) (p Policy) {
	f := kept.Folder(o.State)
	fabric, err := f.Reached(o.NATS)
	if err != nil {
		return Policy{Why: err.Error()}
	}
	if fabric == "" {
		return Policy{Why: "no shim of this machine was ever told the policy there"}
	}
	k, err := f.Policy(fabric)
	switch {
	case err != nil:
		return Policy{Fabric: fabric, Why: err.Error()}
	case k == nil:
		return Policy{Fabric: fabric, Why: "no policy of that fabric is kept"}
	}
	return Policy{Known: true, Fabric: fabric, ConfigVersion: k.ConfigVersion, Guards: len(k.Hooks), Age: took(max(time.Since(k.Since), 0))}
}

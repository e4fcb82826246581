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
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	reachTime = 5 * time.Second // limits the time for the bus, and that for the daemon
	feedTime  = 2 * time.Second // limits the time from a verdict to its record
)

// A fabric is the doctor's connection to the bus; nc is nil if there is no connection.
type fabric struct {
	nc *nats.Conn
	// feed is nil if the credentials do not permit it. hidden is then the reason.
	feed   *nats.Subscription
	hidden string
}

func (f *fabric) close() {
	if f.nc != nil {
		f.nc.Close()
	}
}

// reach connects to the fabric, and adds its status to the report.
func reach(ctx context.Context, o *Options, r *Report) *fabric {
	r.Bus.URL = bus.RedactURL(o.NATS)
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	f := &fabric{}
	began := time.Now()
	st, err := f.status(ctx, o)
	if err != nil && f.nc != nil && errors.Is(err, nats.ErrPermissionViolation) {
		f.feed, f.hidden = nil, err.Error()
		st, err = f.policy(ctx)
	}
	if err != nil {
		r.Bus.Why = err.Error()
		f.close()
		return &fabric{}
	}
	r.Bus.Hidden = f.hidden
	r.Bus.Took = took(time.Since(began))
	r.Bus.Reached, r.Bus.Fabric, r.Bus.ConfigVersion, r.Bus.Hooks = true, st.Fabric, st.ConfigVersion, st.Hooks
	r.Agents = st.Agents
	return f
}

// status connects, subscribes to the records of the doctor's own calls, and returns the fabric's status.
func (f *fabric) status(ctx context.Context, o *Options) (st schema.FabricStatus, err error) {
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	f.nc, err = bus.Connect(ctx, bus.Options{URL: o.NATS, Creds: o.Creds, TLS: o.TLS, Role: "operator", Name: "agentshim-doctor", OnDenied: func(err error) {
		refuse(fmt.Errorf("the credentials in %s do not allow to read the fabric's status: %w; "+
			"create an operator's credentials with 'broker creds add operator NAME', and name them with --creds", o.Creds, err))
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
	body, err := schema.Marshal(schema.StatusRequest{Agents: true, Host: hostname()})
	if err != nil {
		return st, err
	}
	if err := f.request(ctx, "status", body, &st); err != nil {
		return st, err
	}
	if st.Trouble != "" {
		return st, fmt.Errorf("the broker reports a problem: %s", st.Trouble)
	}
	return st, nil
}

// request sends a control request, and decodes the broker's answer.
func (f *fabric) request(ctx context.Context, verb string, body []byte, answer any) error {
	subject, err := bus.ControlSubject(verb, "")
	if err != nil {
		return err
	}
	m, err := f.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), nats.ErrPermissionViolation):
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders):
		return errors.New("NATS answers, but no broker does; start a broker, or ask the operator")
	case err != nil:
		return fmt.Errorf("no broker answers: %w", err)
	case m.Header.Get(schema.HeaderServiceError) != "":
		return fmt.Errorf("the broker answers: %s", m.Header.Get(schema.HeaderServiceError))
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("reading the broker's answer: %w", err)
	}
	return nil
}

// policy requests the policy, which agents may read. The answer shows that a broker answers agents.
func (f *fabric) policy(ctx context.Context) (st schema.FabricStatus, err error) {
	var answer schema.PolicyAnswer
	var p schema.Policy
	if err := f.request(ctx, schema.VerbPolicy, []byte("{}"), &answer); err != nil {
		return st, err
	}
	if err := schema.Unmarshal([]byte(answer.Document), &p); err != nil {
		return st, fmt.Errorf("reading the broker's answer: %w", err)
	}
	return schema.FabricStatus{Fabric: p.Fabric, ConfigVersion: p.ConfigVersion, Hooks: len(p.Hooks)}, nil
}

// Answers reports why no broker answers agents at o.NATS; nil: one does.
func Answers(ctx context.Context, o Options) error {
	nc, err := bus.Connect(ctx, bus.Options{URL: o.NATS, Creds: o.Creds, TLS: o.TLS, Role: "agent", Name: "agentshim-install"})
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = (&fabric{nc: nc}).policy(ctx)
	return err
}

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
	d.Running, d.Calls, d.NATS = true, st.Calls, st.NATS
	return d
}

// policyState returns the stored policy that shims use if they cannot reach the fabric.
func policyState(o *Options) (p Policy) {
	f := shimstate.Folder(o.State)
	if f == "" {
		return Policy{Why: f.Usable().Error()}
	}
	all, err := f.Fabrics(o.NATS)
	if err != nil {
		return Policy{Why: err.Error()}
	}
	if len(all) == 0 {
		return Policy{Why: "no agentshim of this user ever received a policy from that URL"}
	}
	guards := 0
	for _, fabric := range all { // the guards of all of them count
		k, err := f.Policy(fabric)
		switch {
		case err != nil:
			return Policy{Fabric: fabric, Why: err.Error()}
		case k == nil:
			return Policy{Fabric: fabric, Why: "no policy of that fabric is stored"}
		}
		for i := range k.Hooks {
			if k.Hooks[i].Guards {
				guards++
			}
		}
		p = Policy{Known: true, Fabric: fabric, ConfigVersion: k.ConfigVersion, Guards: guards, Fabrics: len(all), Age: took(max(time.Since(k.Since), 0))}
	}
	return p
}

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
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
	// wait is how long an answer may take; 0: askTime.
	wait time.Duration
	// slow is called once when an answer takes long; nil: nobody is told.
	slow func()
}

func (r *remote) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "nats", nats.DefaultURL, "the fabric's NATS URL")
	c.Flags().StringVar(&r.creds, "creds", "", "credentials file")
}

// control makes one control request and decodes its answer.
func (r *remote) control(ctx context.Context, verb, agent string, body []byte, answer any) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{URL: r.url, Creds: r.creds, Name: "broker-" + verb})
	if err != nil {
		return err
	}
	defer nc.Close()
	subject, err := bus.ControlSubject(verb, agent)
	if err != nil {
		return err
	}
	return r.request(ctx, nc, &nats.Msg{Subject: subject, Data: body}, answer)
}

// bounded gives a request its time.
func (r *remote) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := cmp.Or(r.wait, askTime)
	return context.WithTimeoutCause(ctx, wait, fmt.Errorf("nothing came within %s", wait))
}

// request is control on a connection.
func (r *remote) request(ctx context.Context, nc *nats.Conn, msg *nats.Msg, answer any) error {
	if most := nc.MaxPayload(); int64(len(msg.Data)) > most {
		return fmt.Errorf("the request has %d bytes, and the NATS server at %s takes at most %d in one message; raise its max_payload",
			len(msg.Data), bus.RedactURL(r.url), most)
	}
	m, err := r.patiently(func() (*nats.Msg, error) { return nc.RequestMsgWithContext(ctx, msg) })
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &noAnswer{where: bus.RedactURL(r.url), err: err}
	}
	if m.Header.Get(schema.HeaderServiceErrorCode) != "" {
		ce := &schema.ControlError{Message: m.Header.Get(schema.HeaderServiceError)}
		_ = schema.Unmarshal(m.Data, ce) // the header's sentence is enough
		return ce
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("the broker's answer can not be read: %w", err)
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
	_, err = fmt.Fprintln(w, string(data))
	return err
}

// statusCommand shows how a broker sees the fabric.
func statusCommand() *cobra.Command {
	var r remote
	var asJSON bool
	var req schema.StatusRequest
	c := &cobra.Command{
		Use: "status", Short: "Show the fabric: configuration, workers, load", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			body, err := schema.Marshal(req)
			if err != nil {
				return fmt.Errorf("encoding the request: %w", err)
			}
			var st schema.FabricStatus
			if err := r.control(c.Context(), "status", "", body, &st); err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), st)
			}
			if req.Shadow {
				return printShadow(c.OutOrStdout(), st.Shadow)
			}
			return printStatus(c.OutOrStdout(), &st)
		},
	}
	r.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&req.Shadow, "shadow", false, "show what hooks with mode: shadow would have changed")
	return c
}

func printStatus(w io.Writer, st *schema.FabricStatus) error {
	ready := "ready"
	if !st.Ready {
		ready = "not ready: no configuration yet"
	}
	if st.Trouble != "" {
		ready = "in trouble: " + st.Trouble
	}
	fmt.Fprintf(w, "fabric   %s, %s\nrelease  %s\nconfig   version %d, %d hooks\ncalls    %d under way\n",
		st.Fabric, ready, st.Version, st.ConfigVersion, st.Hooks, st.InFlight)
	for _, b := range st.Brokers {
		fmt.Fprintf(w, "broker   %s, version %d%s\n", b.Broker, b.ConfigVersion, candidateState(b.Candidate))
	}
	for _, name := range slices.Sorted(maps.Keys(st.LoadErrors)) {
		fmt.Fprintf(w, "DENIED   hook %q can not be loaded: %s\n", name, st.LoadErrors[name])
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nPOOL\tWORKER\tIN FLIGHT\tCAPACITY\tVERSIONS\tSTATE")
	for _, p := range st.Pools {
		for _, x := range p.Workers {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", p.Pool, x.Worker, x.InFlight, x.Capacity,
				newestOf(x.Versions), workerState(x))
		}
		if len(p.Workers) == 0 {
			fmt.Fprintf(t, "%s\t\t\t\t\tNO WORKER\n", p.Pool)
		}
	}
	return t.Flush()
}

// candidateState says how far a broker is with the version that is to become active.
func candidateState(c *schema.Candidate) string {
	switch {
	case c == nil:
		return ""
	case c.Error != "":
		return fmt.Sprintf("; it can not use version %d: %s", c.Version, c.Error)
	case len(c.LoadErrors) > 0:
		return fmt.Sprintf("; of version %d it can not load %d handlers", c.Version, len(c.LoadErrors))
	}
	return fmt.Sprintf("; version %d is loaded", c.Version)
}

// newestOf lists the newest versions of a worker, and how many more there are.
func newestOf(versions []uint64) string {
	const most = 3
	text := strings.Trim(fmt.Sprint(versions[max(0, len(versions)-most):]), "[]")
	if more := len(versions) - most; more > 0 {
		text += fmt.Sprintf(" (+%d)", more)
	}
	return text
}

func workerState(x schema.WorkerStatus) string {
	switch {
	case x.Silent:
		return "silent"
	case x.Draining:
		return "draining"
	}
	return "ok"
}

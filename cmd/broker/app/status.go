package app

import (
	"context"
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

// remote is where an operator's command finds the fabric.
type remote struct{ url, creds string }

func (r *remote) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.url, "nats", nats.DefaultURL, "the fabric's NATS URL")
	c.Flags().StringVar(&r.creds, "creds", "", "credentials file")
}

// control makes one control request and decodes its answer.
func (r *remote) control(ctx context.Context, verb, agent string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
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
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return fmt.Errorf("no broker answers at %s: %w", bus.RedactURL(r.url), err)
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

// statusCommand shows how a broker sees the fabric.
func statusCommand() *cobra.Command {
	var r remote
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "Show the fabric: configuration, workers, load", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var st schema.FabricStatus
			if err := r.control(c.Context(), "status", "", nil, &st); err != nil {
				return err
			}
			if asJSON {
				data, err := schema.Marshal(st)
				if err == nil {
					_, err = fmt.Fprintln(c.OutOrStdout(), string(data))
				}
				return err
			}
			return printStatus(c.OutOrStdout(), &st)
		},
	}
	r.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printStatus(w io.Writer, st *schema.FabricStatus) error {
	ready := "ready"
	if !st.Ready {
		ready = "not ready: no configuration yet"
	}
	fmt.Fprintf(w, "fabric   %s, %s\nrelease  %s\nconfig   version %d, %d hooks\ncalls    %d under way\n",
		st.Fabric, ready, st.Version, st.ConfigVersion, st.Hooks, st.InFlight)
	for _, name := range slices.Sorted(maps.Keys(st.LoadErrors)) {
		fmt.Fprintf(w, "DENIED   hook %q can not be loaded: %s\n", name, st.LoadErrors[name])
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nPOOL\tWORKER\tIN FLIGHT\tCAPACITY\tVERSIONS\tSTATE")
	for _, p := range st.Pools {
		for _, x := range p.Workers {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", p.Pool, x.Worker, x.InFlight, x.Capacity,
				strings.Trim(fmt.Sprint(x.Versions), "[]"), workerState(x))
		}
		if len(p.Workers) == 0 {
			fmt.Fprintf(t, "%s\t\t\t\t\tNO WORKER\n", p.Pool)
		}
	}
	return t.Flush()
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

package app

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// statusCommand shows how a broker sees the fabric.
func statusCommand() *cobra.Command {
	var r remote
	var asJSON bool
	var req schema.StatusRequest
	c := &cobra.Command{
		Use: "status", Short: "Show the fabric: configuration, workers, load", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var st schema.FabricStatus
			if err := r.ask(c.Context(), "status", "", req, &st); err != nil {
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
	printMemory(w, st)
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

// printMemory says what waits for agents, and whose rounds are over, if any.
func printMemory(w io.Writer, st *schema.FabricStatus) {
	waiting := 0
	for _, n := range st.Pending {
		waiting += n
	}
	if waiting > 0 {
		oldest := ""
		if st.OldestPending > 0 {
			oldest = "; oldest " + rough(st.OldestPending)
		}
		fmt.Fprintf(w, "pending  %d: %s%s\n", waiting, bySource(st.Pending), oldest)
	}
	if st.BlockedRounds > 0 {
		fmt.Fprintf(w, "rounds   %d over: only tools that end them pass\n", st.BlockedRounds)
	}
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

package app

import (
	"cmp"
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
			if req.Agents {
				return printAgents(c.OutOrStdout(), &st)
			}
			return printStatus(c.OutOrStdout(), &st)
		},
	}
	r.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&req.Shadow, "shadow", false, "show what hooks with mode: shadow would have changed")
	c.Flags().BoolVar(&req.Agents, "agents", false, "show the agents that were seen in the last day, first who is silent for the longest")
	c.Flags().StringVar(&req.Host, "host", "", "with --agents: only those of this machine")
	return c
}

// printAgents lists who was seen lately.
func printAgents(w io.Writer, st *schema.FabricStatus) error {
	if len(st.Agents) == 0 {
		_, err := fmt.Fprintln(w, "no agent was seen in the last day; 'agentshim doctor' on its machine says why")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SILENT\tHOST\tRUNTIME\tVERSION\tAGENT\tSESSION")
	for _, a := range st.Agents {
		silent := rough(a.Silent)
		if a.Ended {
			silent = "ended"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", silent, word(a.Host), word(a.Runtime), word(a.Version), word(a.Agent), word(a.Session))
	}
	if more := st.AgentsSeen - len(st.Agents); more > 0 {
		fmt.Fprintf(t, "\n%d more are not listed; --host shows those of one machine\n", more)
	}
	if st.AgentsCrowded {
		fmt.Fprintln(t, "\nthere was no room for all that were seen in the last day: who was silent for the longest may be missing")
	}
	return t.Flush()
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
	printFrozen(w, st.Frozen)
	printLimited(w, st.Limited)
	for _, b := range st.Brokers {
		fmt.Fprintf(w, "broker   %s, version %d%s%s%s\n", b.Broker, b.ConfigVersion, candidateState(b.Candidate), freezeState(&b, st), realmState(&b))
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

// printLimited says who asked this broker for more than one agent may take.
func printLimited(w io.Writer, all []schema.LimitedStatus) {
	const most = 10
	over := map[string]string{"rate": "events a second", "calls": "calls under way", "requests": "control requests"}
	for _, l := range all[:min(len(all), most)] {
		fmt.Fprintf(w, "LIMITED  %s asks for too many %s: %d refused since %s ago, the last %s ago\n",
			word(l.Name), cmp.Or(over[l.Limit], l.Limit), l.Refused, rough(l.Since), rough(l.Last))
	}
	if more := len(all) - most; more > 0 {
		fmt.Fprintf(w, "LIMITED  %d more; --json lists them\n", more)
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

// freezeState says that a broker goes by older freezes than another one.
func freezeState(b *schema.BrokerStatus, st *schema.FabricStatus) string {
	for _, other := range st.Brokers {
		if other.FreezeVersion > b.FreezeVersion {
			return "; it DOES NOT GO BY the newest freeze or thaw yet"
		}
	}
	return ""
}

// realmState says that a broker can not read who may use the fabric, and what to do.
func realmState(b *schema.BrokerStatus) string {
	if !b.RealmUnreadable {
		return ""
	}
	return "; it CAN NOT READ who may use the fabric, and goes by what it knew before, so that who is revoked stays in: " +
		"its log says why; give the folder auth in its data directory to its user, or put back a copy of it"
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

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

// statusCommand is `broker status`.
func statusCommand() *cobra.Command {
	var r remote
	var asJSON bool
	var req schema.StatusRequest
	c := &cobra.Command{
		Use: "status", Short: "Show brokers, workers, configuration and load", Args: program.NoArgs,
		Long: "status shows the brokers, the workers of each pool, the active configuration, waiting messages, frozen agents, and\n" +
			"agents that exceeded a limit within the last minute.",
		Example: "  broker status\n" +
			"  broker status --agents --host build-7\n" +
			"  broker status --shadow",
		RunE: func(c *cobra.Command, _ []string) error {
			var st schema.FabricStatus
			if err := r.ask(c.Context(), schema.VerbStatus, "", req, &st); err != nil {
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
	c.Flags().BoolVar(&req.Shadow, "shadow", false, "show what the hooks with mode: shadow would have changed")
	c.Flags().BoolVar(&req.Agents, "agents", false, "list the agents of the last day; agents that have been silent the longest come first")
	c.Flags().StringVar(&req.Host, "host", "", "with --agents: list only agents of this machine")
	return c
}

// printAgents lists the agents of the last day.
func printAgents(w io.Writer, st *schema.FabricStatus) error {
	if len(st.Agents) == 0 {
		_, err := fmt.Fprintln(w, "no agent was seen in the last day; run 'agentshim doctor' on an agent's machine to find the cause")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SILENT\tHOST\tRUNTIME\tVERSION\tAGENT\tSESSION")
	for _, a := range st.Agents {
		silent := rough(a.Silent)
		if a.Ended {
			silent = "ended"
		}
		row(t, silent, word(a.Host), word(a.Runtime), word(a.Version), word(a.Agent), word(a.Session))
	}
	if more := st.AgentsSeen - len(st.Agents); more > 0 {
		fmt.Fprintf(t, "\n%d more are not listed; list the agents of one machine with --host\n", more)
	}
	if st.AgentsCrowded {
		fmt.Fprintln(t, "\nthe list had no room for all agents of the last day; agents that have been silent the longest may be missing")
	}
	return t.Flush()
}

func printStatus(w io.Writer, st *schema.FabricStatus) error {
	ready := "ready"
	if !st.Ready {
		ready = "not ready: no configuration is active; publish one with 'broker apply FILE'"
	}
	if st.Trouble != "" {
		ready = "in trouble: " + st.Trouble
	}
	_ = printLine(w, "fabric   %s, %s", st.Fabric, ready)
	_ = printLine(w, "release  %s", st.Version)
	_ = printLine(w, "config   version %d, %d hooks", st.ConfigVersion, st.Hooks)
	_ = printLine(w, "calls    %d under way", st.InFlight)
	printMemory(w, st)
	printFrozen(w, st.Frozen)
	printLimited(w, st.Limited)
	for _, b := range st.Brokers {
		_ = printLine(w, "broker   %s, version %d%s%s%s", b.Broker, b.ConfigVersion, candidateState(b.Candidate), freezeState(&b, st), realmState(&b))
	}
	for _, name := range slices.Sorted(maps.Keys(st.LoadErrors)) {
		_ = printLine(w, "DENIED   hook %q cannot be loaded: %s", name, st.LoadErrors[name])
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nPOOL\tWORKER\tIN FLIGHT\tCAPACITY\tVERSIONS\tSTATE")
	for _, p := range st.Pools {
		for _, x := range p.Workers {
			row(t, p.Pool, x.Worker, x.InFlight, x.Capacity, newestOf(x.Versions), workerState(x))
		}
		if len(p.Workers) == 0 {
			row(t, p.Pool, "", "", "", "", "NO WORKER")
		}
	}
	return t.Flush()
}

// printMemory prints the number of waiting items, and of rounds over their hard limit.
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
		_ = printLine(w, "pending  %d: %s%s", waiting, bySource(st.Pending), oldest)
	}
	if st.BlockedRounds > 0 {
		fmt.Fprintf(w, "rounds   %d over their hard limit: only tools that end the round are allowed\n", st.BlockedRounds)
	}
}

// printLimited lists the agents that exceeded a limit.
func printLimited(w io.Writer, all []schema.LimitedStatus) {
	const most = 10
	over := map[string]string{"rate": "events per second", "calls": "calls under way", "bytes": "bytes of large events under way",
		"requests": "control requests", "answers": "waiting answers", "history": "bytes of conversations per hour", "unjudged": "reports of calls that were not judged",
		"messages": "NATS messages per second", "reserve": "requests that need the reserve of operators"}
	for _, l := range all[:min(len(all), most)] {
		_ = printLine(w, "LIMITED  %s exceeds its limit of %s: %d refused in the last %s, the last one %s ago",
			word(l.Name), cmp.Or(over[l.Limit], l.Limit), l.Refused, rough(l.Since), rough(l.Last))
	}
	if more := len(all) - most; more > 0 {
		fmt.Fprintf(w, "LIMITED  %d more; --json lists them\n", more)
	}
}

// candidateState returns the state of a broker's candidate version.
func candidateState(c *schema.Candidate) string {
	switch {
	case c == nil:
		return ""
	case c.Error != "":
		return fmt.Sprintf("; it cannot use version %d: %s", c.Version, c.Error)
	case len(c.LoadErrors) > 0:
		return fmt.Sprintf("; it cannot load %[2]d handlers of version %[1]d", c.Version, len(c.LoadErrors))
	}
	return fmt.Sprintf("; it has loaded version %d", c.Version)
}

// freezeState returns a warning if a broker applies older freezes than another one.
func freezeState(b *schema.BrokerStatus, st *schema.FabricStatus) string {
	for _, other := range st.Brokers {
		if other.FreezeVersion > b.FreezeVersion {
			return "; it DOES NOT APPLY the newest freeze or thaw yet"
		}
	}
	return ""
}

// realmState returns a warning if a broker cannot read the stored credentials.
func realmState(b *schema.BrokerStatus) string {
	if !b.RealmUnreadable {
		return ""
	}
	return "; it CANNOT READ the stored credentials and uses those that it read last, so it still accepts revoked ones: " +
		"see its log; make the folder auth in its data directory readable for the broker's user, or restore it from a backup"
}

// newestOf lists the newest versions of a worker, and the number of others.
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

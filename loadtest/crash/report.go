package crash

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is what a run showed.
type Report struct {
	result.Document
	// Findings are the audit's.
	Findings audit.Findings `json:"findings"`
	// Asked is how many injections were to be put into the queue.
	Asked int `json:"asked"`
	// Pending is what the fabric still held when all was handed over and
	// acknowledged; -1: it did not say.
	Pending int `json:"pending"`
	// Overdue is what was not handed over when the time for that was over, though
	// it may have been before the audit: that is not lost, but late.
	Overdue int `json:"overdue"`
	// Killed counts the processes that were killed, by kind.
	Killed map[string]int `json:"killed"`
	// Calls are the agents' questions; those that a kill took along are missing.
	Calls audit.Calls `json:"calls"`
	// Torn counts lines of logs that somebody was killed in the middle of.
	Torn int `json:"torn"`
	// Wait is how long injections were on their way, from the receipt on.
	Wait Wait `json:"wait"`
	// For and Faults are how long the load and the kills lasted, Drained how long
	// after the load all was handed over.
	For     schema.Duration `json:"for"`
	Faults  schema.Duration `json:"faults"`
	Drained schema.Duration `json:"drained"`
	Agents  int             `json:"agents"`
}

// Wait are quantiles of how long something took.
type Wait struct {
	P50  schema.Duration `json:"p50"`
	P99  schema.Duration `json:"p99"`
	Most schema.Duration `json:"most"`
}

// OK reports whether all that was asked for was accepted, no guarantee was
// broken and no call got a wrong verdict. Where nobody asked, nothing is proven.
func (r *Report) OK() bool {
	return r.Findings.OK() && r.Findings.Accepted >= r.Asked && r.Pending == 0 && r.Calls.Asked > 0 && r.Calls.Wrong == 0 && r.legible()
}

// legible reports whether no more of the logs is torn than who was killed can have been
// writing: else not all is known that was seen.
func (r *Report) legible() bool { return r.Torn <= r.Killed[shimRole]+r.Killed[producerRole] }

// Print writes r as a table for people, with the violations in words.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	f := &r.Findings
	row := func(name string, n int, note string, args ...any) {
		fmt.Fprintf(t, "%s\t%d\t%s\n", name, n, fmt.Sprintf(note, args...))
	}
	row("accepted", f.Accepted, "of %d; %d only at a later try, %d repeats were noticed", r.Asked, f.Retried, f.Repeats)
	row("delivered", f.Delivered, "waited p50 %v, p99 %v, at most %v", r.Wait.P50, r.Wait.P99, r.Wait.Most)
	for _, v := range f.Violations() {
		row(v.Name, v.Kind.Count, "%s", verdict(v.Kind.Count == 0))
	}
	row("twice, by a killed shim", f.Excused.Count, "allowed")
	if f.Early {
		row("not handed over yet", f.Lost.Count, "when the run was interrupted")
	} else {
		row("not handed over in time", r.Overdue, "of %v after the load's end", draining)
		row("still pending in the end", r.Pending, "%s", verdict(r.Pending == 0))
	}
	row("calls", int(r.Calls.Asked), "%d without a verdict, longest %v", r.Calls.Unanswered, r.Calls.Longest)
	row("late answers", int(r.Calls.Late), "to calls that had ended; none counts")
	row("wrong verdicts", int(r.Calls.Wrong), "%s %s", verdict(r.Calls.Wrong == 0), r.Calls.Why)
	row("log lines cut by a kill", r.Torn, "%s", verdict(r.legible()))
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s", r.circumstances(), r.violations())
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "VIOLATION"
}

func (r *Report) circumstances() string {
	var killed []string
	for _, kind := range slices.Sorted(maps.Keys(r.Killed)) {
		killed = append(killed, fmt.Sprintf("%d × %s", r.Killed[kind], kind))
	}
	end := fmt.Sprintf("all handed over %v after its end", r.Drained)
	if r.Findings.Early {
		end = "interrupted before its end"
	}
	return fmt.Sprintf("%d agents for %v, killed in the first %v of it: %s; %s; %v", r.Agents, r.For, r.Faults, strings.Join(killed, ", "), end, r.Machine)
}

// violations are the examples of what was found, one a line.
func (r *Report) violations() string {
	var b strings.Builder
	for _, v := range r.Findings.Violations() {
		for _, example := range v.Kind.Examples {
			fmt.Fprintf(&b, "%s: %s\n", v.Name, example)
		}
	}
	return b.String()
}

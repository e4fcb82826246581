package app

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/hookfabric/hookfabric/schema"
)

// printShadow prints a line for each shadow hook, and below it a line for each way in which it would
// have changed a verdict.
func printShadow(w io.Writer, all []schema.ShadowStatus) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no hook has mode: shadow")
		return err
	}
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "HOOK\tCALLS\tSAME\tDIFFERENT\tLAST EVENT\tREASON")
	for _, h := range all {
		calls, same := shadowCalls(h.Counts)
		row(t, h.Hook, calls, same, calls-same, "", "")
		for _, n := range h.Counts {
			if n.Decided != n.Would {
				row(t, fmt.Sprintf("  %s → %s", n.Decided, n.Would), "", "", n.Count, n.Last, quoted(n.Reason))
			}
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	return nil
}

// shadowCalls counts the calls for which a shadow hook ran, and those whose verdict it would not
// have changed.
func shadowCalls(counts []schema.ShadowCount) (calls, same uint64) {
	for _, n := range counts {
		calls += n.Count
		if n.Decided == n.Would {
			same += n.Count
		}
	}
	return calls, same
}

// quoted returns a hook's reason, quoted on one line.
func quoted(reason string) string {
	if reason == "" {
		return ""
	}
	return strconv.Quote(reason)
}

package loop

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// asDue is what is checked of every kind of query.
const asDue = "a query sends its workers exactly the expected messages"

// document fills in what others read of the report.
func (r *Report) document() {
	absolute := result.Table{
		Title:   fmt.Sprintf("a query of %d events, absolute, median", r.Events),
		Columns: []string{"", "p50, 1 caller", fmt.Sprintf("p50, %d callers", many), "queries per second"},
		Note:    "Absolute times hold for this machine at this time; compare the ratios.",
	}
	for _, a := range r.Absolute {
		absolute.Rows = append(absolute.Rows, []string{a.Name, a.P50.String(), a.P50Many.String(), fmt.Sprintf("%.0f", a.PerSecond)})
	}
	messages := result.Table{Title: "messages of one query to workers", Columns: []string{"", "sent", "due"}}
	check := r.Check(asDue)
	check.Least = 1
	for _, m := range r.Messages {
		messages.Rows = append(messages.Rows, []string{m.Name, fmt.Sprint(m.PerQuery), fmt.Sprint(m.Due)})
		check.Seen++
		if !m.OK {
			check.Fail(fmt.Sprintf("%s: %d instead of %d", m.Name, m.PerQuery, m.Due))
		}
	}
	r.Tables = []result.Table{absolute, messages}
}

package state

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// ratio adds a row with its ratios, one per repetition.
func (r *Report) ratio(row bench.Row, ratios []float64) {
	r.Rows, r.Figures = append(r.Rows, row.Judged(ratios)), append(r.Figures, row.Figure(ratios))
}

// The promises that the parts are held against.
const (
	measured    = "every part was measured"
	onceGiven   = "a call that delivers items writes once, for any number of items"
	oneWrite    = "a broadcast is one write, and reaches every agent once"
	nothingLost = "no item is lost and no call unanswered when a leader is killed"
	onceEach    = "no item is delivered twice when a leader is killed"
)

// document fills in what others read of the report of so many parts.
func (r *Report) document(parts int64) {
	check := r.Check(measured)
	check.Seen = parts
	for _, f := range r.Failures {
		check.Fail(f)
	}
	for _, g := range r.Given {
		check := r.Check(onceGiven)
		check.Seen, check.Least = check.Seen+int64(g.Calls), 1
		if !g.OK() {
			check.Fail(fmt.Sprintf("%d calls that delivered %d items each took %d writes", g.Calls, g.Items, g.Writes))
		}
	}
	if b := r.Broadcast; b != nil {
		check := r.Check(oneWrite)
		check.Seen, check.Least = int64(b.Agents), 1
		if !b.OK() {
			check.Fail(fmt.Sprintf("%d writes for %d agents, of which %d received it", b.Writes, b.Agents, b.Reached))
		}
	}
	for i, l := range r.Leaderless {
		check := r.Check(nothingLost)
		check.Seen++
		if l.Lost > 0 || l.Idle.Unanswered > 0 || l.Due.Unanswered > 0 {
			check.Fail(fmt.Sprintf("kill %d: %d of %d items lost; unanswered calls: %d without waiting items, %d with waiting items",
				i+1, l.Lost, l.Accepted, l.Idle.Unanswered, l.Due.Unanswered))
		}
		check = r.Check(onceEach)
		check.Seen += int64(l.Delivered)
		check.Least = 1
		for range l.Again {
			check.Fail(fmt.Sprintf("kill %d: one of %d", i+1, l.Delivered))
		}
	}
	r.Tables = r.tables()
}

// tables are the absolute figures.
func (r *Report) tables() []result.Table {
	var all []result.Table
	if len(r.Speed) > 0 {
		t := result.Table{
			Title: "the queue, absolute, median", Columns: []string{"where", "what", "callers", "p50", "p99", "per second", "too late"},
			Note: "Absolute times hold for this machine at this time. \"Too late\" is the share of calls that continued without the waiting items.",
		}
		for _, s := range r.Speed {
			t.Rows = append(t.Rows, []string{
				s.Site, s.Name, fmt.Sprint(s.Callers), s.P50.String(), s.P99.String(), fmt.Sprintf("%.0f", s.PerSecond), fmt.Sprintf("%.1f %%", 100*s.Late),
			})
		}
		all = append(all, t)
	}
	if o := r.Others; o != nil {
		all = append(all, result.Table{
			Title: fmt.Sprintf("%d items that wait for %d other agents", o.Items, o.Agents), Columns: []string{"", ""},
			Rows: [][]string{
				{"heap of each", fmt.Sprintf("%.0f B", o.HeapPerItem)}, {"memory of each", fmt.Sprintf("%.0f B", o.MemoryPerItem)},
				{"the broker is ready after", o.Start.String()}, {"after a kill -9", o.StartAfterKill.String()}, {"without items", o.StartEmpty.String()},
			},
		})
	}
	if len(r.Leaderless) > 0 {
		t := result.Table{Title: "kill -9 of the items' leader", Columns: []string{"kill", "nothing accepted for", "nothing delivered for", "refused", "accepted", "handed over"}}
		for i, l := range r.Leaderless {
			t.Rows = append(t.Rows, []string{
				fmt.Sprint(i + 1), l.NoEnqueue.String(), l.NoDelivery.String(), fmt.Sprint(l.Refused), fmt.Sprint(l.Accepted), fmt.Sprint(l.Delivered),
			})
		}
		all = append(all, t)
	}
	return all
}

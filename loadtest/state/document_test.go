package state

import (
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/bench"
)

// TestTheChecksJudgeAsTheReport spoils one thing after the other.
func TestTheChecksJudgeAsTheReport(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Report)
		want  bool
	}{
		"a run in which all was well is fine":   {func(*Report) {}, true},
		"a part that was not measured is not":   {func(r *Report) { r.Failures = []string{"speed: it rained"} }, false},
		"nor is a call of two writes":           {func(r *Report) { r.Given[1].Writes++ }, false},
		"nor is a broadcast of two writes":      {func(r *Report) { r.Broadcast.Writes = 2 }, false},
		"nor is an item that a kill took along": {func(r *Report) { r.Leaderless[1].Lost++ }, false},
		"nor is one that came twice":            {func(r *Report) { r.Leaderless[1].Again++ }, false},
		"nor is a call that nobody answered":    {func(r *Report) { r.Leaderless[0].Idle.Unanswered = 1 }, false},
		"nor is a ratio over its budget": {func(r *Report) {
			limit := 1.1
			r.ratio(bench.Row{Name: "items", Callers: 1, Metric: "p50", Budget: &limit}, []float64{2, 2, 2})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{
				Given:     []*Given{{Items: 1, Calls: 9, Writes: 9}, {Items: 8, Calls: 9, Writes: 9}},
				Broadcast: &Broadcast{Agents: 3, Writes: 1, Reached: 3}, Others: &Others{},
				Leaderless: []*Leaderless{{Accepted: 2, Delivered: 2}, {Accepted: 2, Delivered: 2}}, Speed: []Speed{{Site: "here"}},
			}
			c.spoil(r)
			r.document(4)
			if err := r.Sound(); err != nil || r.OK() != c.want || r.Document.OK() != c.want {
				t.Errorf("the report says %v, its checks %+v, %v", r.OK(), r.Checks, err)
			}
			if len(r.Checks) != 5 || r.Checks[0].Seen != 4 || r.Checks[1].Seen != 18 || r.Checks[3].Seen != 2 || len(r.Tables) != 3 {
				t.Errorf("there are the checks %+v and %d tables", r.Checks, len(r.Tables))
			}
		})
	}
}

package aggregator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// TestAStatusTellsNotEachOfVeryManySourcesApart checks that a status fits into a message with any
// number of sources.
func TestAStatusTellsNotEachOfVeryManySourcesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		m.put(human("hello"))
		for i := range 200_000 {
			m.put(&schema.Item{Source: fmt.Sprintf("%s-%d", strings.Repeat("word", 12), i), Content: "x"})
		}
		want := map[string]int{schema.SourceHuman: 1, "other": 200_000}
		if diff := cmp.Diff(want, f.status("").Pending); diff != "" {
			t.Error(diff[:min(len(diff), 1000)])
		}
	})
}

// TestAStatusTellsOfAgentsWhoeverAsksForThem checks that a status lists agents only on request, and
// at most as many as fit into a message: those that are silent for the longest.
func TestAStatusTellsOfAgentsWhoeverAsksForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := remembering(t, newMemory(), library{})
		if st := f.status(""); len(st.Agents)+st.AgentsSeen > 0 {
			t.Errorf("%d agents, without a request", len(st.Agents))
		}
		st := f.status(`{"agents":true,"host":"dev-7"}`)
		if len(st.Agents) != schema.MaxAgents || !st.AgentsCrowded || st.AgentsSeen != schema.MaxAgents+1 || st.Agents[0] != (schema.AgentStatus{Agent: "a0", Host: "dev-7"}) {
			t.Errorf("%d of %d agents, first %+v", len(st.Agents), st.AgentsSeen, st.Agents[0])
		}
	})
}

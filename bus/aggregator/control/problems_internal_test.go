package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// lacking returns the problems of a number of nodes, each of which cannot load a number of hooks.
func lacking(nodes, hooks int) (all []schema.Problem) {
	for n := range nodes {
		for h := range hooks {
			all = append(all, schema.Problem{Node: fmt.Sprintf("n%03d", n), Hook: fmt.Sprintf("h%04d", h), Error: strings.Repeat("é", 2000)})
		}
	}
	return all
}

func TestAFewProblemsAreAllTold(t *testing.T) {
	all := []schema.Problem{{Node: "a", Hook: "h", Error: "no such program"}, {Node: "b", Error: "it cannot be read"}}
	if diff := cmp.Diff(all, limitProblems(all)); diff != "" {
		t.Error(diff)
	}
	if limitProblems(nil) != nil {
		t.Error("of none, some are told")
	}
}

func TestSomeProblemsOfEachNodeAreTold(t *testing.T) {
	some := limitProblems(lacking(3, 5000))
	if len(some) != 3*21 {
		t.Fatalf("%d are told", len(some))
	}
	for n := range 3 {
		first, last := some[n*21], some[n*21+20]
		if first.Node != fmt.Sprintf("n%03d", n) || first.Hook != "h0000" || last.Node != first.Node || last.Error != "4980 more problems of this node are not listed" {
			t.Errorf("of the node %d: %s %s, %+v", n, first.Node, first.Hook, last)
		}
	}
}

func TestTheProblemsOfAFleetFitIntoAMessage(t *testing.T) {
	some := limitProblems(lacking(1000, 30))
	data, err := schema.Marshal(some)
	if err != nil || len(data) > 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if last := some[len(some)-1]; last.Node != "n020" || last.Error != "this and 29399 more problems, of this node and others, are not listed" {
		t.Errorf("in the end it says %+v", last)
	}
}

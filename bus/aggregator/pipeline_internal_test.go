package aggregator

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnEventPassesTheStepsInThisOrder checks the order of the steps, which carries promises. An
// agent is charged for malformed events. A frozen agent is denied regardless of its hooks. No
// verdict is sent after the lease has lapsed.
func TestAnEventPassesTheStepsInThisOrder(t *testing.T) {
	want := []string{
		"checkReply", "decode", "dropStale", "checkLease", "chargeAgent", "awaitLarge", "startSpan", "verify",
		"notice", "checkFreeze", "selectHooks", "shed", "judge", "recheckLease", "remember", "sendVerdict",
	}
	if d := cmp.Diff(want, strings.Split((&Aggregator{}).steps().String(), "\n")); d != "" {
		t.Errorf("the steps (-want +got):\n%s", d)
	}
}

// TestEachStepHasAFileAndTheDocumentationNamesThemInOrder checks that each step is in the file of
// its name, and that doc.go lists the files in the order of the steps.
func TestEachStepHasAFileAndTheDocumentationNamesThemInOrder(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(doc)
	for step := range strings.SplitSeq((&Aggregator{}).steps().String(), "\n") {
		file := strings.ToLower(step) + ".go"
		code, err := os.ReadFile(file)
		if err != nil || strings.Count(string(code), ") pass(e *arrival) bool {") != 1 {
			t.Errorf("%s does not have the step %s: %v", file, step, err)
		}
		before, after, found := strings.Cut(rest, file)
		if rest = after; !found {
			t.Fatalf("doc.go does not name %s after the file of the step before it; what follows is:\n%s", file, before)
		}
	}
}

// ends is a step that hands a number of events on, and then no more.
type ends struct{ left, seen *int }

func (s ends) pass(*arrival) bool {
	*s.seen++
	*s.left--
	return *s.left >= 0
}

func TestAStepThatEndsTheWayOfAnEventIsTheLastOne(t *testing.T) {
	left, first, last := 1, 0, 0
	p := pipeline{ends{&left, &first}, ends{new(int), &last}}
	for range 3 {
		p.run(new(arrival))
	}
	if first != 3 || last != 1 {
		t.Errorf("the first step saw %d events, the last one %d", first, last)
	}
}

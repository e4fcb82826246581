package aggregator

import (
	"os"
	"regexp"
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
	if d := cmp.Diff(want, strings.Split((&judging{}).steps().String(), "\n")); d != "" {
		t.Errorf("the steps (-want +got):\n%s", d)
	}
}

// TestTheDocumentationNamesTheStepsInTheirOrder checks that doc.go lists the steps in their order,
// and after each the file that has it.
func TestTheDocumentationNamesTheStepsInTheirOrder(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`//  \d+\. (\w+) \(([\w/.]+)\)`).FindAllStringSubmatch(string(doc), -1)
	steps := strings.Split((&judging{}).steps().String(), "\n")
	if len(listed) != len(steps) {
		t.Fatalf("doc.go lists %d steps of %d", len(listed), len(steps))
	}
	for i, step := range steps {
		name, file := listed[i][1], listed[i][2]
		code, err := os.ReadFile(file)
		method := regexp.MustCompile(`(?i)\) ` + step + `\(e \*(event|Arrival)\) bool \{`)
		if name != step || err != nil || !method.Match(code) {
			t.Errorf("doc.go lists %s of %s as step %d, which is %s: %v", name, file, i+1, step, err)
		}
	}
}

func TestAStepThatEndsTheWayOfAnEventIsTheLastOne(t *testing.T) {
	left, seen := 1, [2]int{}
	p := pipeline{
		{"first", func(*event) bool {
			seen[0]++
			left--
			return left >= 0
		}},
		{"last", func(*event) bool {
			seen[1]++
			return true
		}},
	}
	for range 3 {
		p.run(new(event))
	}
	if seen != [2]int{3, 1} {
		t.Errorf("the steps saw %v events", seen)
	}
}

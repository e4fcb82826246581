package fabric_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
)

// A pointRow is a point of the table.
type pointRow struct {
	point point
	// asked: a client waits for this step, which may die or be cut off, too.
	asked bool
	// handing: it is on the way from the queue to an agent, by a shim of either kind.
	handing bool
	// rounds: only a round leads there.
	rounds bool
}

// pointRows are all points, in the order in which an item and then a round pass them.
func pointRows() []pointRow {
	return []pointRow{
		{point: point(queue.StepEnqueueBegun), asked: true},
		{point: point(queue.StepEnqueueStored), asked: true},
		{point: point(queue.StepClaimBegun), asked: true, handing: true},
		{point: point(queue.StepClaimStored), asked: true, handing: true},
		{point: verdictDecided, asked: true, handing: true},
		{point: verdictSent, asked: true, handing: true},
		{point: shimReceived, asked: true, handing: true},
		{point: shimHanded, asked: true, handing: true},
		{point: point(queue.StepAckBegun), asked: true, handing: true},
		{point: point(queue.StepAckStored), asked: true, handing: true},
		{point: shimAcked, asked: true, handing: true},
		{point: point(queue.StepEndBegun)},
		{point: point(queue.StepEndStored)},
		{point: point(queue.StepMarkStored)},
		{point: point(rounds.StepStartStored), asked: true, rounds: true},
		{point: point(rounds.StepWarnedBegun), rounds: true},
		{point: point(rounds.StepWarnedStored), rounds: true},
		{point: point(rounds.StepDenialBegun), asked: true, rounds: true},
		{point: point(rounds.StepDenialStored), asked: true, rounds: true},
	}
}

func roles() []role {
	return []role{brokerDies, brokerCut, brokerLost, askerDies, askerCut, askerLost, serverStarts}
}

// A cell is one point and what goes wrong there.
type cell struct {
	row  pointRow
	role role
	// way is what passes the point.
	way way
	// later is how often the point is passed before that.
	later int
}

// A way leads to a point.
type way string

// The ways.
const (
	oneShot  way = "notes"   // by a shim that lives for one event
	daemon   way = "daemon"  // by one that lives on
	timeOver way = "warning" // that of a round, by a shim for one event
)

// ways are those that lead to the cell's point, where its role is there.
func (c cell) ways() (all []way) {
	c.way = oneShot
	switch {
	case c.outcome() == noClient:
		return nil
	case c.row.rounds:
		return []way{timeOver}
	case c.row.handing:
		all = []way{oneShot, daemon}
	default:
		all = []way{oneShot}
	}
	// A broker puts the warning there itself; and it is what a short cut changes least.
	queued := c.row.asked && !c.row.handing
	if c.row.point != point(queue.StepMarkStored) && c.role != brokerCut && c.role != askerCut && !(queued && (c.role == askerDies || c.role == askerLost)) {
		all = append(all, timeOver)
	}
	return all
}

// What may come of a cell.
const (
	once     = "once"
	twice    = "≤ 2"
	noClient = "–"
)

// outcome is what the table says of the cell.
func (c cell) outcome() string {
	switch p := c.row.point; {
	case !c.row.asked && (c.role == askerDies || c.role == askerCut || c.role == askerLost):
		return noClient
	case c.role == askerDies && (p == shimHanded || p == point(queue.StepAckBegun) || p == point(queue.StepAckStored)):
		return twice
	}
	return once
}

// pointTable is the table as it stands below.
func pointTable() string {
	var b strings.Builder
	line := func(first string, cell func(role) string) {
		fmt.Fprintf(&b, "//\t%-21s", first)
		for _, r := range roles() {
			fmt.Fprintf(&b, "%-*s", len(r)+2, cell(r))
		}
		s := strings.TrimRight(b.String(), " ")
		b.Reset()
		b.WriteString(s + "\n")
	}
	line("", func(r role) string { return string(r) })
	for _, row := range pointRows() {
		line(string(row.point), func(r role) string { return cell{row: row, role: r}.outcome() })
	}
	return b.String()
}

// TestPoints lets each failure happen at each point on the way of an item from its producer to the agent, and at each
// point of a round. Two brokers, shims of both kinds, and producers that repeat requests continue, dead processes are
// restarted, and in the end nothing waits.
//
//	                     broker dies  broker cut off 3s  broker cut off 40s  asker dies  asker cut off 3s  asker cut off 40s  server restarts
//	enqueue.begun        once         once               once                once        once              once               once
//	enqueue.stored       once         once               once                once        once              once               once
//	claim.begun          once         once               once                once        once              once               once
//	claim.stored         once         once               once                once        once              once               once
//	verdict.decided      once         once               once                once        once              once               once
//	verdict.sent         once         once               once                once        once              once               once
//	shim.received        once         once               once                once        once              once               once
//	shim.handed          once         once               once                ≤ 2         once              once               once
//	ack.begun            once         once               once                ≤ 2         once              once               once
//	ack.stored           once         once               once                ≤ 2         once              once               once
//	shim.acked           once         once               once                once        once              once               once
//	end.begun            once         once               once                –           –                 –                  once
//	end.stored           once         once               once                –           –                 –                  once
//	mark.stored          once         once               once                –           –                 –                  once
//	round.start.stored   once         once               once                once        once              once               once
//	round.warned.begun   once         once               once                –           –                 –                  once
//	round.warned.stored  once         once               once                –           –                 –                  once
//	round.denial.begun   once         once               once                once        once              once               once
//	round.denial.stored  once         once               once                once        once              once               once
//
// once: each accepted item came exactly once, in order per agent and source; one warning in a round, no denial before
// the end of its grace period, and ten denials until the end of the run. ≤ 2: the shim died between delivery and
// acknowledgement, so its items may come once more. –: no client waits for this step.
func TestPoints(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	passes := 1
	if os.Getenv("HOOKFABRIC_LONG") != "" {
		passes = 5
	}
	for _, row := range pointRows() {
		for i, r := range roles() {
			if n := everyNth(); i%n != len(row.point)%n {
				continue
			}
			for _, way := range (cell{row: row, role: r}).ways() {
				for later := range passes {
					c := cell{row, r, way, later}
					t.Run(c.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { playCell(t, c) }) })
				}
			}
		}
	}
}

// everyNth is which part of the table there is time for: a third of it under the
// race detector, which takes five times as long, and in short. Every point and
// every role is in it.
func everyNth() int {
	if testing.Short() || bustest.Raced && os.Getenv("HOOKFABRIC_LONG") == "" {
		return 3
	}
	return 1
}

func (c cell) String() string {
	name := fmt.Sprintf("%s/%s/%s", c.row.point, c.role, c.way)
	if c.later > 0 {
		name += fmt.Sprintf("/after %d", c.later)
	}
	return name
}

func playCell(t *testing.T, c cell) {
	daemons := []bool{false, true}
	if c.way == timeOver {
		daemons = daemons[:1]
	}
	w, came := newWorld(t, c), "once"
	if w.play(daemons...).run() {
		came = "twice"
	}
	if !w.hit {
		t.Skip("the point is not passed that often")
	}
	t.Logf("%-20s %-19s %-8s the table says %-5s it came %s", c.row.point, c.role, c.way, c.outcome(), came)
}

// TestThePointsAreInTheTable holds the comment above to the table, and the table
// to all steps that there are.
func TestThePointsAreInTheTable(t *testing.T) {
	source, err := os.ReadFile("points_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if table := pointTable(); !strings.Contains(string(source), "\n//\n"+table+"//\n") {
		t.Errorf("write above TestPoints:\n%s", table)
	}
	for _, dir := range []string{"../../../bus/state/queue", "../../../bus/state/rounds"} {
		steps := stepsIn(t, dir)
		if len(steps) == 0 {
			t.Errorf("%s names no steps", dir)
		}
		for _, s := range steps {
			if !slices.ContainsFunc(pointRows(), func(r pointRow) bool { return string(r.point) == s }) {
				t.Errorf("nothing goes wrong at the step %q of %s; write a row for it", s, dir)
			}
		}
	}
}

// stepsIn are the values of a package's constants of the type Step.
func stepsIn(t *testing.T, dir string) (all []string) {
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for n := range ast.Preorder(f) {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || fmt.Sprint(spec.Type) != "Step" {
				continue
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					all = append(all, strings.Trim(lit.Value, `"`))
				}
			}
		}
	}
	return all
}

package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// The promises of a cluster.
const (
	inTime      = "the queue accepted or rejected every item within 10 s"
	holds       = "no call passed after a freeze was confirmed"
	underLoad   = "every fault happened under load"
	wholeAgain  = "within 5 minutes of each fault, all brokers had the complete state again"
	changesFast = "every configuration became active while brokers were restarted"
)

// document returns the report of all parts.
func (r *cluster) document() *report.Document {
	d := &report.Document{Scenario: r.scenario.Name, Title: r.title(), Tables: []report.Table{r.stalls()}}
	for _, one := range r.loads {
		of := one.measured.Document()
		Add(of, one.measured)
		one.merge(d, of)
		one.judge(d)
		if one.freeze != nil {
			d.Tables = append(d.Tables, one.freeze.table())
		}
		if n := len(one.changes); n > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%d configurations became active while brokers were restarted.", n))
		}
	}
	var left []string
	for _, p := range r.scenario.Cluster.Parts {
		if r.stage.Hosts == nil && p.CutsOff() {
			left = append(left, p.Name)
		}
	}
	if len(left) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("CAREFUL: the parts %s were skipped: this machine has no network namespaces for brokers, so no broker can be cut off.", strings.Join(left, ", ")))
	}
	return d
}

func (r *cluster) title() string {
	where := "each in its own network namespace"
	if r.stage.Hosts == nil {
		where = "all on one host"
	}
	return fmt.Sprintf("a cluster of %d brokers, %s, under %.0f tool calls per second", r.scenario.Fabric.Brokers, where, r.scenario.Rate)
}

// merge adds the report of one load to that of the run.
func (one *partLoad) merge(d, of *report.Document) {
	d.Merge(of.Checks)
	for _, f := range of.Figures {
		if strings.HasPrefix(f.Name, "longest") || strings.HasPrefix(f.Name, "p99 of") || strings.HasPrefix(f.Name, "p50") {
			f.Name = one.named(f.Name)
			d.Figures = append(d.Figures, f)
		}
	}
	for _, t := range of.Tables {
		if !strings.HasPrefix(t.Title, "Processes") {
			t.Title = one.named(t.Title)
			d.Tables = append(d.Tables, t)
		}
	}
	for _, p := range of.Plots[:2] { // memory does not change in so short a time
		p.Title = one.named(p.Title)
		d.Plots = append(d.Plots, p)
	}
}

// named returns the name of a result with its part and load.
func (one *partLoad) named(what string) string {
	if one.load > 1 {
		what += fmt.Sprintf(", load %d", one.load)
	}
	return one.Name + ": " + what
}

// stall returns the impact of a step on the queue, until the next step or the last message.
func (one *partLoad) stall(i int) stall {
	s, attempts := one.steps[i], one.measured.Attempts
	until := s.Until
	if i+1 < len(one.steps) {
		until = one.steps[i+1].From
	} else if n := len(attempts); n > 0 && attempts[n-1].Answered.After(until) {
		until = attempts[n-1].Answered
	}
	return stalled(attempts, number(s.Fault.Member), s.From, until)
}

// judge adds the promises of a cluster, and whether the load kept them.
func (one *partLoad) judge(d *report.Document) {
	early := one.measured.Early
	hold := func(name string, seen int) *report.Check {
		c := d.Check(name)
		if c.Seen += int64(seen); !early {
			c.Least = 1
		}
		return c
	}
	figure := func(name string, seconds float64) report.Figure {
		return report.Figured(one.named(name), "s", report.Lower, []float64{seconds})
	}
	end := one.measured.Began.Add(one.measured.Scenario.For.Std())
	var late, longest, whole time.Duration
	for i, s := range one.steps {
		st := one.stall(i)
		longest, late, whole = max(longest, st.elsewhere), max(late, st.answer), max(whole, s.whole)
		if c := hold(inTime, st.accepted+st.rejected); st.answer > rejectedIn+slack {
			c.Fail(fmt.Sprintf("%v: one took %v", s.Fault, st.answer.Round(time.Millisecond)))
		}
		if s.lacking {
			hold(wholeAgain, 1).Fail(fmt.Sprintf("%v: not all brokers had it", s.Fault))
		} else if s.whole > 0 {
			hold(wholeAgain, 1)
		}
		if c := hold(underLoad, 1); s.Until.After(end) && !early {
			c.Fail(fmt.Sprintf("%v was over %v after the load", s.Fault, s.Until.Sub(end).Round(time.Millisecond)))
		}
	}
	if one.Changes {
		c, slowest := hold(changesFast, len(one.changes)), time.Duration(0)
		for _, ch := range one.changes {
			slowest = max(slowest, ch.active.Sub(ch.asked))
			if ch.version == 0 {
				c.Fail("one never did")
			}
		}
		d.Figures = append(d.Figures, figure("longest change of the configuration", slowest.Seconds()))
	}
	if f := one.freeze; f != nil {
		f.judge(hold(holds, len(f.probes)), early)
	}
	d.Figures = append(d.Figures,
		figure("longest time in which the queue accepted nothing", longest.Seconds()).Within(rejectedIn.Seconds()),
		figure("longest answer to a producer", late.Seconds()),
		figure("longest time from a fault until all brokers had the complete state again", whole.Seconds()))
}

// stalls returns the table of the impact of each step on the queue.
func (r *cluster) stalls() report.Table {
	t := report.Table{
		Title:   "Queue, from each fault until the next one",
		Columns: []string{"", "fault", "streams led", "accepted", "rejected", "no answer", "longest answer", "accepts nothing: this broker", "other brokers", "complete state after"},
		Note: "At each broker, two producers send items all the time, and stay connected to that broker. " +
			"\"This broker\" is the one with the fault. \"Streams led\" counts the streams whose leader it was; * means that the queue was one of them. " +
			"The state is complete when every broker has the data of all others. The next fault happens only then.",
	}
	seconds := func(d time.Duration) string { return report.Value(d.Seconds(), "s") }
	for _, one := range r.loads {
		for i, s := range one.steps {
			st, led := one.stall(i), fmt.Sprintf("%d of %d", s.leads, s.of)
			if s.queue {
				led += " *"
			}
			t.Rows = append(t.Rows, slices.Concat([]string{one.Name, s.Fault.String(), led},
				[]string{strconv.Itoa(st.accepted), strconv.Itoa(st.rejected), strconv.Itoa(st.lost)},
				[]string{seconds(st.answer), seconds(st.there), seconds(st.elsewhere), seconds(s.whole)}))
		}
	}
	return t
}

// rejectedIn is when a broker rejects a request to store a message at the latest, and slack how
// much later a busy machine may be.
const (
	rejectedIn = 10 * time.Second
	slack      = time.Second
)

// stall is the impact of a step on the requests to put a message into the queue, until the next
// step.
type stall struct {
	// there and elsewhere are the longest times in which the queue accepted nothing: through the
	// broker with the fault, and through all others.
	there, elsewhere time.Duration
	// answer is the longest time until a request was accepted or rejected. Of a broker without
	// the fault, it includes requests without an answer.
	answer                   time.Duration
	accepted, rejected, lost int
}

// stalled returns the impact of a step at a broker from one time until another.
func stalled(all []audit.Attempt, broker int, from, until time.Time) (s stall) {
	last := [2]time.Time{from, from} // elsewhere, there
	for _, a := range all {
		if a.Answered.Before(from) || a.Asked.After(until) {
			continue
		}
		switch {
		case a.Lost:
			s.lost++
		case a.Accepted:
			s.accepted++
		default:
			s.rejected++
		}
		if !a.Lost || a.Broker != broker {
			s.answer = max(s.answer, a.Answered.Sub(a.Asked))
		}
		if !a.Accepted {
			continue
		}
		if a.Broker == broker {
			s.there = max(s.there, a.Answered.Sub(last[1]))
			last[1] = a.Answered
		} else {
			s.elsewhere = max(s.elsewhere, a.Answered.Sub(last[0]))
			last[0] = a.Answered
		}
	}
	s.elsewhere, s.there = max(s.elsewhere, until.Sub(last[0])), max(s.there, until.Sub(last[1]))
	return s
}

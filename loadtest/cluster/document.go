package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/chaos"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// The promises of a cluster.
const (
	inTime      = "the queue accepted or rejected every item within 10 s"
	keeps       = "every accepted item is in the queue"
	holds       = "no call passed after a freeze was confirmed"
	underLoad   = "every fault happened under load"
	wholeAgain  = "within 5 minutes of each fault, all brokers had the complete state again"
	changesFast = "every configuration became active while brokers were restarted"
)

// slack is how much later a machine may be that does much else.
const slack = time.Second

// document is what all parts showed.
func (r *run) document() (*result.Document, error) {
	d := &result.Document{Scenario: "cluster", Title: r.title()}
	var tables, plots = []result.Table{r.stalls()}, []result.Plot(nil)
	for _, one := range r.shown {
		of, err := one.measured.Document()
		if err != nil {
			return nil, err
		}
		if err := chaos.Add(of, one.measured); err != nil {
			return nil, err
		}
		merge(d, of.Checks)
		for _, f := range of.Figures {
			if strings.HasPrefix(f.Name, "longest") || strings.HasPrefix(f.Name, "p99 of") || strings.HasPrefix(f.Name, "p50") {
				f.Name = one.named(f.Name)
				d.Figures = append(d.Figures, f)
			}
		}
		for _, t := range of.Tables {
			if !strings.HasPrefix(t.Title, "Processes") {
				t.Title = one.named(t.Title)
				tables = append(tables, t)
			}
		}
		for _, p := range of.Plots[:2] { // memory says nothing in so short a time
			p.Title = one.named(p.Title)
			plots = append(plots, p)
		}
		r.judge(d, one)
		if one.freeze != nil {
			tables = append(tables, one.freeze.table())
		}
	}
	d.Tables, d.Plots, d.Notes = tables, plots, r.notes()
	return d, nil
}

// named is the name of something that the load showed.
func (one *shown) named(what string) string {
	if one.load > 1 {
		what += fmt.Sprintf(", load %d", one.load)
	}
	return one.part + ": " + what
}

func (r *run) title() string {
	where := "each in its own network namespace"
	if r.Lan == nil {
		where = "all on one host"
	}
	return fmt.Sprintf("a cluster of %d brokers, %s, under %.0f tool calls per second", Brokers, where, r.Rate)
}

// merge adds what a part's checks saw to what those before did.
func merge(d *result.Document, checks []result.Check) {
	for _, c := range checks {
		to := d.Check(c.Name)
		to.Add(c)
		to.Least = max(to.Least, c.Least)
	}
}

// until is when what belongs to a step ends: when the next one begins, or nothing more
// was put into the queue.
func (one *shown) until(i int) time.Time {
	if i+1 < len(one.steps) {
		return one.steps[i+1].From
	}
	return one.told
}

// stall is what a step did to those who put something into the queue.
func (one *shown) stall(i int) stall {
	s := one.steps[i]
	return stalled(one.attempts, number(s.Fault.Member), s.From, one.until(i))
}

// judge holds a part against the promises of a cluster.
func (r *run) judge(d *result.Document, one *shown) {
	early := one.measured.Early
	hold := func(name string, seen int) *result.Check {
		c := d.Check(name)
		if c.Seen += int64(seen); !early {
			c.Least = 1
		}
		return c
	}
	end := one.measured.Began.Add(one.measured.Scenario.For.Std())
	late, longest, whole := 0.0, 0.0, 0.0
	for i, s := range one.steps {
		st := one.stall(i)
		longest, late, whole = max(longest, st.elsewhere.Seconds()), max(late, st.answer.Seconds()), max(whole, s.whole.Seconds())
		if c := hold(inTime, st.accepted+st.refused); st.answer > refusedIn+slack {
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
	kept := hold(keeps, one.accepted)
	for _, key := range one.lost {
		kept.Fail(fmt.Sprintf("%s: %s does not", one.part, key))
	}
	if one.part == change {
		c := hold(changesFast, len(one.changes))
		slowest := 0.0
		for _, ch := range one.changes {
			slowest = max(slowest, ch.active.Sub(ch.asked).Seconds())
			if ch.version == 0 {
				c.Fail("one never did")
			}
		}
		d.Figures = append(d.Figures, result.Figured(one.named("longest change of the configuration"), "s", result.Lower, []float64{slowest}))
	}
	if f := one.freeze; f != nil {
		f.judge(hold(holds, len(f.probes)), early)
	}
	d.Figures = append(d.Figures,
		result.Figured(one.named("longest time in which the queue accepted nothing"), "s", result.Lower, []float64{longest}).Within(refusedIn.Seconds()),
		result.Figured(one.named("longest answer to a producer"), "s", result.Lower, []float64{late}),
		result.Figured(one.named("longest time from a fault until all brokers had the complete state again"), "s", result.Lower, []float64{whole}))
}

// stalls is the table of what each step did to those who put something into the queue.
func (r *run) stalls() result.Table {
	t := result.Table{
		Title:   "Queue, from each fault until the next one",
		Columns: []string{"", "fault", "streams led", "accepted", "rejected", "no answer", "longest answer", "accepts nothing: this broker", "other brokers", "complete state after"},
		Note: "At each broker, two producers send items all the time, and stay connected to that broker. " +
			"\"This broker\" is the one with the fault. \"Streams led\" counts the streams whose leader it was; * means that the queue was one of them. " +
			"The state is complete when every broker has the data of all others. The next fault happens only then.",
	}
	time := func(d time.Duration) string { return units.Value(d.Seconds(), "s") }
	for _, one := range r.shown {
		for i, s := range one.steps {
			st, led := one.stall(i), fmt.Sprintf("%d of %d", s.leads, s.of)
			if s.items {
				led += " *"
			}
			t.Rows = append(t.Rows, []string{
				one.part, s.Fault.String(), led, strconv.Itoa(st.accepted), strconv.Itoa(st.refused), strconv.Itoa(st.lost),
				time(st.answer), time(st.there), time(st.elsewhere), time(s.whole),
			})
		}
	}
	return t
}

// table is what became of frozen agents' calls.
func (f *frozen) table() result.Table {
	t := result.Table{
		Title:   "A freeze while a broker is cut off",
		Columns: []string{"broker", "passed", "last one, after the request", "passed after the confirmation", "no answer", "refused", "first one, after the request"},
		Note: fmt.Sprintf("The freeze was confirmed %s after its request, by %d brokers; missing: %s. The cut ended %s after the request. "+
			"A broker that is cut off uses its last state until its lease ends. No freeze is confirmed before that.",
			units.Value(f.answered.Sub(f.asked).Seconds(), "s"), f.confirmed, none(strings.Join(f.missing, ", ")), units.Value(f.healed.Sub(f.asked).Seconds(), "s")),
	}
	for n := range Brokers {
		of := f.of(n + 1)
		name := field.Numbered(field.Broker, n+1)
		if of.broker == f.cut {
			name += ", cut off"
		}
		t.Rows = append(t.Rows, []string{
			name, strconv.Itoa(of.passed), units.Value(of.last.Seconds(), "s"), strconv.Itoa(of.confirmed), strconv.Itoa(of.unanswered),
			strconv.Itoa(of.refused), units.Value(of.first.Seconds(), "s"),
		})
	}
	return t
}

func none(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// judge holds the calls against the freeze, which every broker must have obeyed in the end,
// unless that came early.
func (f *frozen) judge(c *result.Check, early bool) {
	if len(f.missing) > 0 {
		c.Fail(fmt.Sprintf("it was not confirmed within %v: %s did not confirm it, and may still let calls pass", frozenIn, strings.Join(f.missing, ", ")))
	}
	for n := range Brokers {
		of := f.of(n + 1)
		if of.confirmed > 0 {
			c.Fail(fmt.Sprintf("%d through broker %d", of.confirmed, of.broker))
		}
		if of.refused == 0 && !early {
			c.Fail(fmt.Sprintf("broker %d never refused a call", of.broker))
		}
	}
}

// notes say what a reader must know.
func (r *run) notes() (notes []string) {
	for _, one := range r.shown {
		if n := len(one.changes); n > 0 {
			notes = append(notes, fmt.Sprintf("%d configurations became active while brokers were restarted.", n))
		}
	}
	left := slices.DeleteFunc(Parts(), func(p string) bool { return r.Lan != nil || !cuts(p) || len(r.Only) > 0 && !slices.Contains(r.Only, p) })
	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("CAREFUL: the parts %s were skipped: this machine has no network namespaces for brokers, so no broker can be cut off.", strings.Join(left, ", ")))
	}
	return notes
}

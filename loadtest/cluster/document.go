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
	inTime      = "what was to be put into the queue was accepted or refused within 10 s"
	keeps       = "what was accepted waits in the queue"
	holds       = "no call passed a freeze that was confirmed"
	underLoad   = "the faults were done under load"
	wholeAgain  = "after each fault all brokers had everything again within 5 minutes"
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
	where := "each on a host of its own"
	if r.Lan == nil {
		where = "all on one host"
	}
	return fmt.Sprintf("%d brokers that are one, %s, under %.0f uses of tools per second", Brokers, where, r.Rate)
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
			hold(wholeAgain, 1).Fail(fmt.Sprintf("%v: they had not", s.Fault))
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
		result.Figured(one.named("longest time in which nothing was put into the queue"), "s", result.Lower, []float64{longest}).Within(refusedIn.Seconds()),
		result.Figured(one.named("longest answer to who puts something into the queue"), "s", result.Lower, []float64{late}),
		result.Figured(one.named("longest time after a fault until all brokers had everything again"), "s", result.Lower, []float64{whole}))
}

// stalls is the table of what each step did to those who put something into the queue.
func (r *run) stalls() result.Table {
	t := result.Table{
		Title:   "Putting something into the queue, from a fault until the next one",
		Columns: []string{"", "fault", "it led", "accepted", "refused", "without an answer", "longest answer", "nothing accepted: there", "elsewhere", "everything everywhere after"},
		Note: "Two clients at each broker put something into the queue all the time, and stay with their broker whatever becomes of it. " +
			"There is by way of the broker that suffered, elsewhere by way of all others. It led so many of all streams; * with that of the queue. " +
			"Everything is everywhere when each broker has all that the others have; before that the next one is not done.",
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
		Columns: []string{"by way of", "passed", "the last, after it was asked for", "passed after it was confirmed", "no answer", "refused", "the first, after it was asked for"},
		Note: fmt.Sprintf("It was confirmed %s after it was asked for, by %d brokers, and missed by %s; the cut was over %s after it was asked for. "+
			"A broker that is cut off goes on by what it knows until its lease ends, and no freeze is confirmed before.",
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
		return "nobody"
	}
	return text
}

// judge holds the calls against the freeze, which every broker must have obeyed in the end,
// unless that came early.
func (f *frozen) judge(c *result.Check, early bool) {
	if len(f.missing) > 0 {
		c.Fail(fmt.Sprintf("it was not confirmed within %v: %s did not say so, and may still have let calls pass", frozenIn, strings.Join(f.missing, ", ")))
	}
	for n := range Brokers {
		of := f.of(n + 1)
		if of.confirmed > 0 {
			c.Fail(fmt.Sprintf("%d by way of broker %d", of.confirmed, of.broker))
		}
		if of.refused == 0 && !early {
			c.Fail(fmt.Sprintf("broker %d never refused any", of.broker))
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
		notes = append(notes, fmt.Sprintf("CAREFUL: %s were left out: this machine gives brokers no hosts of their own, so that none can be cut off.", strings.Join(left, ", ")))
	}
	return notes
}

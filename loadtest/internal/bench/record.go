package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// Rate is the default number of verdicts per second.
const Rate = 2000

const (
	// steady is the number of calls that may be in progress at the rate, far more than are.
	steady = 32
	// kept is the limit of one broker's record, so small that it is full soon.
	kept = 1 << 20
)

// A mode is a broker with one way of recording.
type mode struct{ name, record, bytes string }

const (
	off     = "no record"
	facts   = "the facts"
	content = "the content, too"
	small   = "the facts, of which 1 MiB is kept"
)

// modes lists all of them. The first is the base.
func modes() []mode {
	return []mode{{off, "off", ""}, {facts, "facts", ""}, {content, "content", ""}, {small, "facts", "1MiB"}}
}

// A pace is a way to ask brokers: at a rate that leaves CPUs idle, or at full speed.
type pace struct {
	callers, hooks int
	tool           string
	// title is that of the table, suffix ends the names of the figures.
	title, suffix string
	window        load.Window
}

func paces(o *Options) []pace {
	rate := o.Rate
	if rate == 0 {
		rate = Rate
	}
	long, warm := o.Milliseconds(1000, 200), o.Milliseconds(100, 20)
	atRate, busy := fmt.Sprintf(", %.0f times a second", rate), fmt.Sprintf(", %d callers flat out", Many)
	return []pace{
		{steady, 3, "Recorded", "Call with 3 hooks" + atRate, atRate, load.Window{Warm: warm, Long: long, Rate: rate}},
		// A quarter of the window: it has as many calls, and not more records than the broker buffers.
		{Many, 8, "Often", "Call with 8 hooks" + busy, busy, load.Window{Warm: warm / 4, Long: long / 4}},
	}
}

// recordHooks is the configuration of all brokers.
func recordHooks(paces []pace) string {
	var b strings.Builder
	b.WriteString("presets: []\nhooks:\n  PreToolUse:\n")
	for _, l := range paces {
		for i := range l.hooks {
			fmt.Fprintf(&b, "    - {name: %s-%d, matcher: %s, type: builtin, handler: allow}\n", l.tool, i+1, l.tool)
		}
	}
	return b.String()
}

// A recorder is the broker of a mode.
type recorder struct {
	mode
	*Fabric
}

// CheckRecord returns an error for options with which the command record cannot run.
func CheckRecord(o *Options) error {
	if !(o.Rate >= 1 && o.Rate <= 100_000) {
		return fmt.Errorf("--rate is %v; write 1 to 100000 verdicts per second", o.Rate)
	}
	return nil
}

// Record measures the cost of recording verdicts: brokers with different records take the
// same calls in turns. It then reads the records and compares them with the calls.
func Record(ctx context.Context, o Options) (_ *Report, err error) {
	o.Crew = o.Crew.Like(roles.KeepPages)
	paces := paces(&o)
	var recorders []recorder
	var all []Contender
	defer func() {
		for _, r := range recorders {
			err = errors.Join(err, r.Stop())
		}
	}()
	for i, m := range modes() {
		f, err := o.Start(ctx, fmt.Sprint("broker-", i), recordHooks(paces), roles.BrokerConfig{Record: m.record, RecordBytes: m.bytes})
		if err != nil {
			return nil, err
		}
		f.linger = flushed * 3 / 2
		recorders = append(recorders, recorder{m, f})
		if err := f.Ask(ctx); err != nil {
			return nil, err
		}
		all = append(all, Contender{Name: m.name, Measure: func(ctx context.Context, callers int) (s Sample, err error) {
			for _, p := range paces {
				if p.callers == callers {
					p.window.Callers = callers
					s, err = f.Measure(ctx, roles.Target{Way: roles.Fabric, Tool: p.tool, Hooks: p.hooks}, p.window)
				}
			}
			return s, err
		}})
	}
	samples, err := o.Repeat(ctx, o.Times(10, 1), []int{steady, Many}, all)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if ctx.Err() == nil {
		for _, s := range recorders {
			if err := s.look(ctx, &r.Document); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	r.judgeRecord(&o, samples)
	return r, nil
}

// judgeRecord compares each mode with the one that records nothing.
func (r *Report) judgeRecord(o *Options, s Samples) {
	r.Repetitions, r.Window = len(s[off]), paces(o)[0].window.Long
	for i, l := range paces(o) {
		t := report.Table{Title: l.title, Columns: []string{"record", "p50", "p99", "CPU of the broker per call", "calls per second"}}
		for _, m := range modes() {
			middle := func(value func(Sample) float64) float64 { return report.Median(s.Of(m.name, l.callers, value)) }
			t.Rows = append(t.Rows, []string{
				m.name, report.Value(middle(P50), "s"), report.Value(middle(P99), "s"), report.Value(middle(CPUOf(roles.Broker)), "s"), fmt.Sprintf("%.0f", middle(PerSecond)),
			})
			if m.name == off || m.name == small {
				continue
			}
			ratio := func(what string, better report.Direction, value func(Sample) float64) report.Figure {
				all := s.Of(m.name, l.callers, value)
				for i, base := range s.Of(off, l.callers, value) {
					all[i] /= base
				}
				return report.Figured(what+" with "+m.name+" : "+off+l.suffix, "ratio", better, all)
			}
			added := s.Of(m.name, l.callers, CPUOf(roles.Broker))
			for i, base := range s.Of(off, l.callers, CPUOf(roles.Broker)) {
				added[i] -= base
			}
			median := ratio("p50", report.Lower, P50)
			if i == 0 && m.name == facts {
				median = median.Within(RecordedFacts)
			}
			r.Figures = append(r.Figures, median, report.Figured("CPU of the broker per call, added by "+m.name+l.suffix, "s", report.Lower, added))
			if i == 0 {
				r.Figures = append(r.Figures, ratio("CPU of the broker per call", report.Lower, CPUOf(roles.Broker)))
			} else {
				r.Figures = append(r.Figures, ratio("throughput", report.Higher, PerSecond))
			}
		}
		r.Tables = append(r.Tables, t)
	}
	for _, name := range []string{complete, bounded, newest, silent, nothing} {
		r.Check(name).Least = 1
	}
	r.Notes = []string{
		"The hooks run inside the broker. Each repetition measures the brokers in random order, and compares them with the one without a record.",
		"The broker answers a call before it records it, so recording affects latency only if the CPUs are busy. The budget holds at the given rate; at full speed, callers, broker and record share the CPUs.",
		"The CPU of the broker includes work after the answer: encoding lines, hashing inputs, and writes to the disk by the embedded server.",
	}
}

// flushed is the longest time until the broker writes a record.
const flushed = 200 * time.Millisecond

// The checks of the record.
const (
	complete = "each call is in the record once"
	bounded  = "the stream stays within its size limit"
	newest   = "the stream keeps the newest records, without a gap"
	silent   = "the broker dropped no record"
	nothing  = "a broker with --record off keeps no record"
)

// look reads the record of a broker and compares it with the calls.
func (s recorder) look(ctx context.Context, d *report.Document) error {
	nc, err := bus.Connect(ctx, bus.Options{URL: s.URL(), Name: "loadtest record"})
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("using JetStream: %w", err)
	}
	if s.name == off {
		_, err := record.Look(ctx, js)
		c := d.Check(nothing)
		if c.Seen++; !errors.Is(err, record.ErrNone) {
			c.Fail(fmt.Sprintf("%s: %v", s.name, err))
		}
		return nil
	}
	seen, dropped, numbers := map[string]int{}, uint64(0), []uint64{}
	err = record.Read(ctx, js, record.Span{}, func(b *record.Batch) error {
		dropped += b.Dropped
		numbers = append(numbers, b.Number)
		for _, line := range b.Lines {
			var rec schema.Record
			if err := schema.Unmarshal(line, &rec); err != nil {
				return fmt.Errorf("a record cannot be read: %w", err)
			}
			seen[rec.EventID]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.judge(d, seen, dropped)
	return s.size(ctx, d, js, numbers)
}

// judge compares the records of a broker with its calls.
func (s recorder) judge(d *report.Document, seen map[string]int, dropped uint64) {
	c := d.Check(silent)
	if c.Seen++; dropped > 0 {
		c.Fail(fmt.Sprintf("%s: %d records", s.name, dropped))
	}
	if s.bytes != "" {
		return // the limit has removed most of them
	}
	c = d.Check(complete)
	c.Seen += s.asked
	if int64(len(seen)) != s.asked {
		c.Fail(fmt.Sprintf("%s: %d calls, but %d in the record", s.name, s.asked, len(seen)))
	}
	for id, n := range seen {
		if n != 1 {
			c.Fail(fmt.Sprintf("%s: %s is recorded %d times", s.name, id, n))
		}
	}
}

// size checks that the stream of a broker is within its limit and holds the newest records.
func (s recorder) size(ctx context.Context, d *report.Document, js jetstream.JetStream, numbers []uint64) error {
	stream, err := js.Stream(ctx, record.Name)
	if err != nil {
		return fmt.Errorf("asking for the stream: %w", err)
	}
	is := stream.CachedInfo()
	limit := uint64(record.DefaultBytes)
	if s.bytes != "" {
		limit = kept
	}
	c := d.Check(bounded)
	if c.Seen++; is.State.Bytes > limit {
		c.Fail(fmt.Sprintf("%s: %d bytes", s.name, is.State.Bytes))
	}
	c = d.Check(newest)
	if c.Seen++; len(numbers) == 0 || int(numbers[len(numbers)-1]-numbers[0]) != len(numbers)-1 || is.State.LastSeq != numbers[len(numbers)-1] {
		c.Fail(fmt.Sprintf("%s: %d messages, the last of %d", s.name, len(numbers), is.State.LastSeq))
	}
	return nil
}

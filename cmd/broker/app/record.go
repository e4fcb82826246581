package app

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// What is written down of verdicts.
const (
	RecordFacts   = "facts"
	RecordContent = "content"
	RecordOff     = "off"
)

// RecordOptions say what is written down of verdicts, and for how long that is kept.
type RecordOptions struct {
	// Mode is RecordFacts (who, what, which hooks, how it was decided), RecordContent
	// (what was asked about, too) or RecordOff; empty: RecordFacts.
	Mode string
	// Age is for how long it is kept, Bytes how much of it; 0: a week, and a gibibyte
	// or an eighth of what the server may store, whichever is less.
	Age   time.Duration
	Bytes int64
	// Redact are places at which there are secrets: see [redact.Parse].
	Redact []string
}

func (o *RecordOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Mode, "record", RecordFacts, "what the broker records of each verdict, for 'broker feed': facts; content (adds input and output of the call, without detected secrets); off")
	program.DurationVar(f, &o.Age, "record-age", record.DefaultAge, "remove records older than this; 0: 7d")
	program.BytesVar(f, &o.Bytes, "record-bytes", 0, "remove the oldest records beyond this size; 0: 1GiB, or an eighth of the disk that the server may use if that is less")
	f.StringSliceVar(&o.Redact, "record-redact", nil, "places that --record content never stores, in addition to detected secrets: tool_input.env.*, **.authorization")
}

// rules reads what is wrong with the options, or where the secrets are.
func (o *RecordOptions) rules() (*redact.Rules, error) {
	switch o.Mode {
	case "", RecordFacts, RecordContent, RecordOff:
	default:
		return nil, program.UsageError("--record is %q; use facts, content or off", o.Mode)
	}
	if o.Age != 0 && o.Age < record.MinAge {
		return nil, program.UsageError("--record-age is %v; use at least %v, or --record off", o.Age, record.MinAge)
	}
	if o.Bytes != 0 && o.Bytes < record.MinBytes {
		return nil, program.UsageError("--record-bytes is %d; use at least %dMiB, or --record off", o.Bytes, record.MinBytes>>20)
	}
	rules, err := redact.Parse(o.Redact)
	if err != nil {
		return nil, program.UsageError("--record-redact: %w", err)
	}
	return rules, nil
}

// startRecord begins to write down what is decided. It is stopped after the
// aggregator, so that all of it is written.
func (b *Broker) startRecord(context.Context) error {
	rules, err := b.opt.Record.rules()
	written, dropped := b.recordMetrics()
	if err != nil {
		return err
	}
	if b.opt.Record.Mode == RecordOff {
		b.showWaiting(func() int { return 0 })
		return nil
	}
	js, err := jetstream.New(b.work)
	if err != nil {
		return fmt.Errorf("reaching JetStream: %w", err)
	}
	b.record, err = record.Start(js, record.Options{
		Broker: b.name, Content: b.opt.Record.Mode == RecordContent, Rules: rules,
		Limits:  record.Limits{Age: b.opt.Record.Age, Bytes: b.opt.Record.Bytes, Room: b.room(), Replicas: b.replicas()},
		Host:    func(agent string) string { return b.memory.sessions.Known(agent).Host },
		Written: func(n int) { written.Add(float64(n)) },
		Dropped: func(c record.Cause, n int) { dropped.WithLabelValues(string(c)).Add(float64(n)) },
		Logger:  b.log,
	})
	if err != nil {
		return err
	}
	b.stack.Push("record", b.record.Close)
	b.showWaiting(b.record.Waiting)
	return nil
}

// recordMetrics makes the record's metrics, which are there before anything is counted.
func (b *Broker) recordMetrics() (written prometheus.Counter, dropped *prometheus.CounterVec) {
	written = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "hookfabric", Name: "record_written_total", Help: "Records of verdicts that the stream stored.",
	})
	dropped = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "hookfabric", Name: "record_dropped_total", Help: "Records of verdicts that the broker dropped, by reason. Alert on this.",
	}, []string{"cause"})
	for _, c := range record.Causes() {
		dropped.WithLabelValues(string(c))
	}
	b.reg.MustRegister(written, dropped)
	return written, dropped
}

func (b *Broker) showWaiting(waiting func() int) {
	b.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "hookfabric", Name: "record_waiting", Help: "Records of verdicts that wait to be written (approximate).",
	}, func() float64 { return float64(waiting()) }))
}

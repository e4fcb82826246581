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

// The values of --record.
const (
	RecordFacts   = "facts"
	RecordContent = "content"
	RecordOff     = "off"
)

// RecordOptions configure the record of verdicts.
type RecordOptions struct {
	// Mode is RecordFacts (agent, event, hooks, decision), RecordContent (also input and output) or
	// RecordOff; empty: RecordFacts.
	Mode string
	// Age and Bytes limit the record. 0 is a week for Age. For Bytes it is 1 GiB, or an eighth of the
	// server's storage if that is less.
	Age   time.Duration
	Bytes int64
	// Redact are paths of secrets: see [redact.Parse].
	Redact []string
}

func (o *RecordOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Mode, "record", RecordFacts, "what the broker records of each verdict, for 'broker feed': facts; content (adds input and output of the call, without detected secrets); off")
	program.DurationVar(f, &o.Age, "record-age", record.DefaultAge, "remove records older than this; 0: 7d")
	program.BytesVar(f, &o.Bytes, "record-bytes", 0, "remove the oldest records beyond this size; 0: 1GiB, or an eighth of the disk that the server may use if that is less")
	f.StringSliceVar(&o.Redact, "record-redact", nil, "places that --record content never stores, in addition to detected secrets: tool_input.env.*, **.authorization")
}

// rules checks the options and returns the rules of redaction.
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

// startRecord starts the record. It stops after the aggregator, so that all verdicts are written.
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
		Limits:  record.Limits{Age: b.opt.Record.Age, Bytes: b.opt.Record.Bytes, Room: b.storage(), Replicas: b.replicas()},
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

// recordMetrics registers the record's metrics, which exist before the first record.
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

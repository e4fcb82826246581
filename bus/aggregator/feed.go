package aggregator

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// feedDepth bounds the records that wait to be published.
const feedDepth = 4096

// feed publishes one record per verdict, off the path: a slow feed loses
// records, which is counted, and never holds a verdict back.
type feed struct {
	nc       *nats.Conn
	interest func(string) bool
	records  chan *schema.Record
	expired  <-chan *schema.Item
	dropped  prometheus.Counter
	log      *slog.Logger
}

func newFeed(opt Options, dropped prometheus.Counter) *feed {
	if opt.Interest == nil {
		opt.Interest = func(string) bool { return true }
	}
	return &feed{
		nc: opt.Work, interest: opt.Interest, dropped: dropped, log: opt.Logger,
		records: make(chan *schema.Record, feedDepth), expired: opt.Ledger.expired,
	}
}

// verdict puts a verdict on the feed.
func (f *feed) verdict(r *schema.Routing, v *schema.Verdict, took time.Duration) {
	f.put(r, func() *schema.Record { return schema.RecordOf(r, v, took) })
}

// aside puts what is not in a verdict on the feed.
func (f *feed) aside(r *schema.Routing, part *schema.Verdict) {
	f.put(r, func() *schema.Record {
		rec := schema.RecordOf(r, part, 0)
		rec.Aside = true
		return rec
	})
}

// shadowed puts on the feed what came of a shadow hook, and what would have.
func (f *feed) shadowed(r *schema.Routing, s *dispatch.Shadowed) {
	f.put(r, func() *schema.Record {
		rec := schema.RecordOf(r, &s.Part, 0)
		rec.Aside, rec.Would = true, s.Would
		return rec
	})
}

// unjudged puts on the feed that a shim decided about a call that nobody judged.
func (f *feed) unjudged(u *schema.Unjudged) {
	f.put(&schema.Routing{Agent: u.Agent}, func() *schema.Record { return schema.UnjudgedRecord(u) })
}

// all puts on the feed what is about no agent in particular.
func (f *feed) all(rec *schema.Record) {
	if !f.interest(bus.FeedOfAll) {
		return
	}
	select {
	case f.records <- rec:
	default:
		f.dropped.Inc()
	}
}

func (f *feed) put(r *schema.Routing, make func() *schema.Record) {
	subject, err := bus.FeedSubject(r.Agent)
	if err != nil || !f.interest(subject) {
		return
	}
	select {
	case f.records <- make():
	default:
		f.dropped.Inc()
	}
}

// run publishes until ctx ends, and then what is still there.
func (f *feed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			for len(f.records) > 0 {
				f.publish(<-f.records)
			}
			return
		case r := <-f.records:
			f.publish(r)
		case it := <-f.expired:
			f.publish(schema.ExpiredRecord(it))
		}
	}
}

func (f *feed) publish(r *schema.Record) {
	subject := bus.FeedOfAll
	if r.Agent != "" {
		var err error
		if subject, err = bus.FeedSubject(r.Agent); err != nil {
			return
		}
	}
	data, err := schema.Marshal(r)
	if err == nil {
		err = f.nc.Publish(subject, data)
	}
	if err != nil {
		f.dropped.Inc()
		f.log.Debug("feed record could not be published", "error", err)
	}
}

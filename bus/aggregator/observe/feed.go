package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/schema"
)

// feedDepth bounds the records that wait to be published.
const feedDepth = 4096

// A Feed publishes one record per verdict, after the answer. A slow feed drops records, which is
// counted, and never delays a verdict. A Recorder stores the same records.
type Feed struct {
	nc       *nats.Conn
	interest func(string) bool
	recorder Recorder // nil: records are only published
	records  chan *schema.Record
	expired  <-chan *schema.Item
	dropped  prometheus.Counter
	log      *slog.Logger
}

// A Recorder stores records. Put never waits, and may drop a record for which it has no room.
type Recorder interface {
	Put(e record.Entry)
}

// FeedOptions are the parameters of NewFeed.
type FeedOptions struct {
	Conn *nats.Conn
	// Interest reports whether a client listens on a subject; nil: always.
	Interest func(subject string) bool
	Recorder Recorder // nil: records are only published
	Ledger   *Ledger
	Dropped  prometheus.Counter
	Logger   *slog.Logger
}

// NewFeed makes a Feed. [Feed.Run] publishes.
func NewFeed(o FeedOptions) *Feed {
	if o.Interest == nil {
		o.Interest = func(string) bool { return true }
	}
	return &Feed{
		nc: o.Conn, interest: o.Interest, recorder: o.Recorder, dropped: o.Dropped, log: o.Logger,
		records: make(chan *schema.Record, feedDepth), expired: o.Ledger.expired,
	}
}

// verdict puts a verdict on the feed.
func (f *Feed) verdict(t *Answered, v *schema.Verdict, took time.Duration) {
	heard, wanted := f.wanted(t.Agent)
	if !wanted {
		return
	}
	rec := schema.RecordOf(t.Routing, v, took)
	rec.Attempt, rec.Failed, rec.Shed, rec.Malformed, rec.Limited = t.attempt(), v.Failed(t.Event), t.Shed, t.Malformed, t.Limited
	if rec.Failed == schema.FailedOpen && t.stopped(v) {
		rec.Failed = ""
	}
	f.tell(record.Entry{Record: rec, Body: t.Msg.Data, Input: v.UpdatedInput, Output: v.UpdatedOutput, Value: v.Value}, heard)
}

// aside puts a hook's result on the feed that is not part of a verdict.
func (f *Feed) aside(r *schema.Routing, part *schema.Verdict) {
	if heard, wanted := f.wanted(r.Agent); wanted {
		rec := schema.RecordOf(r, part, 0)
		rec.Aside = true
		f.tell(record.Entry{Record: rec}, heard)
	}
}

// shadowed publishes what a shadow hook would have decided.
func (f *Feed) shadowed(r *schema.Routing, s *dispatch.Shadowed) {
	if heard, wanted := f.wanted(r.Agent); wanted {
		rec := schema.RecordOf(r, &s.Part, 0)
		rec.Aside, rec.Would = true, s.Would
		f.tell(record.Entry{Record: rec}, heard)
	}
}

// Unjudged puts on the feed that a shim decided about a call that no broker judged.
func (f *Feed) Unjudged(u *schema.Unjudged) {
	if heard, wanted := f.wanted(u.Agent); wanted {
		f.tell(record.Entry{Record: schema.UnjudgedRecord(u)}, heard)
	}
}

// Limited puts on the feed how many events of an agent were over a limit and have no record; an
// empty name: events of several agents.
func (f *Feed) Limited(name, limit string, more int) {
	rec := schema.LimitedRecord(name, limit, more)
	if name == "" {
		f.All(rec)
	} else if heard, wanted := f.wanted(name); wanted {
		f.tell(record.Entry{Record: rec}, heard)
	}
}

// All puts on the feed a record that is about no agent in particular.
func (f *Feed) All(rec *schema.Record) {
	f.tell(record.Entry{Record: rec}, f.interest(bus.FeedOfAll))
}

// wanted reports whether a client listens to records about an agent (heard), and whether a client or
// the recorder wants them.
func (f *Feed) wanted(agent string) (heard, wanted bool) {
	subject, err := bus.FeedSubject(agent)
	heard = err == nil && f.interest(subject)
	return heard, heard || f.recorder != nil
}

// tell hands a record to the recorder, and publishes it if a client listens.
func (f *Feed) tell(e record.Entry, heard bool) {
	if f.recorder != nil {
		f.recorder.Put(e)
	}
	if !heard {
		return
	}
	select {
	case f.records <- e.Record:
	default:
		f.dropped.Inc()
	}
}

// Run publishes until ctx ends, and then the records that still wait.
func (f *Feed) Run(ctx context.Context) {
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
			r := schema.ExpiredRecord(it)
			if f.recorder != nil {
				f.recorder.Put(record.Entry{Record: r})
			}
			f.publish(r)
		}
	}
}

func (f *Feed) publish(r *schema.Record) {
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
		f.log.Debug("cannot publish a feed record", "error", err)
	}
}

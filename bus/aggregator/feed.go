package aggregator

import (
	"context"
	"log/slog"
	"strconv"
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

// feed publishes one record per verdict, off the path: a slow feed loses
// records, which is counted, and never holds a verdict back. The same records are
// written down, where that is wanted.
type feed struct {
	nc       *nats.Conn
	interest func(string) bool
	recorder Recorder // nil: nothing is written down
	records  chan *schema.Record
	expired  <-chan *schema.Item
	dropped  prometheus.Counter
	log      *slog.Logger
}

// A Recorder writes down what the feed tells. Put never waits, and may drop what it
// has no room for.
type Recorder interface {
	Put(e record.Entry)
}

func newFeed(opt Options, dropped prometheus.Counter) *feed {
	if opt.Interest == nil {
		opt.Interest = func(string) bool { return true }
	}
	return &feed{
		nc: opt.Work, interest: opt.Interest, recorder: opt.Recorder, dropped: dropped, log: opt.Logger,
		records: make(chan *schema.Record, feedDepth), expired: opt.Ledger.expired,
	}
}

// closed is an event that was answered, as it is reported afterwards.
type closed struct {
	*schema.Routing
	msg             *nats.Msg
	arrived         time.Time
	shed, malformed bool
	limited         string        // the limit that the agent was over
	untold          bool          // it is one of many such, of which only the number is told
	wait            time.Duration // until it would not be; 0: nobody knows
}

// closed returns the event as it is reported afterwards.
func (e *arrival) closed() *closed {
	return &closed{Routing: &e.req.Routing, msg: e.msg, arrived: e.at}
}

// attempt is how often the event was asked; 0: once.
func (t *closed) attempt() int {
	if n, err := strconv.Atoi(t.msg.Header.Get(schema.HeaderAttempt)); err == nil && n > 1 && n <= bus.MaxAttempt {
		return n
	}
	return 0
}

// stopped reports whether the limit that the agent was over refused the call: no hook's
// failure was taken as no opinion then.
func (t *closed) stopped(v *schema.Verdict) bool {
	return t.limited != "" && t.Event.Terminal(v.Decision)
}

// verdict puts a verdict on the feed.
func (f *feed) verdict(t *closed, v *schema.Verdict, took time.Duration) {
	heard, wanted := f.wanted(t.Agent)
	if !wanted {
		return
	}
	rec := schema.RecordOf(t.Routing, v, took)
	rec.Attempt, rec.Failed, rec.Shed, rec.Malformed, rec.Limited = t.attempt(), v.Failed(t.Event), t.shed, t.malformed, t.limited
	if rec.Failed == schema.FailedOpen && t.stopped(v) {
		rec.Failed = ""
	}
	f.tell(record.Entry{Record: rec, Body: t.msg.Data, Input: v.UpdatedInput, Output: v.UpdatedOutput, Value: v.Value}, heard)
}

// aside puts what is not in a verdict on the feed.
func (f *feed) aside(r *schema.Routing, part *schema.Verdict) {
	if heard, wanted := f.wanted(r.Agent); wanted {
		rec := schema.RecordOf(r, part, 0)
		rec.Aside = true
		f.tell(record.Entry{Record: rec}, heard)
	}
}

// shadowed puts on the feed what came of a shadow hook, and what would have.
func (f *feed) shadowed(r *schema.Routing, s *dispatch.Shadowed) {
	if heard, wanted := f.wanted(r.Agent); wanted {
		rec := schema.RecordOf(r, &s.Part, 0)
		rec.Aside, rec.Would = true, s.Would
		f.tell(record.Entry{Record: rec}, heard)
	}
}

// unjudged puts on the feed that a shim decided about a call that nobody judged.
func (f *feed) unjudged(u *schema.Unjudged) {
	if heard, wanted := f.wanted(u.Agent); wanted {
		f.tell(record.Entry{Record: schema.UnjudgedRecord(u)}, heard)
	}
}

// rest puts on the feed how many events were over a limit and have no record.
func (f *feed) rest(r rest) {
	rec := schema.LimitedRecord(r.name, r.limit, r.more)
	if r.name == "" {
		f.all(rec)
	} else if heard, wanted := f.wanted(r.name); wanted {
		f.tell(record.Entry{Record: rec}, heard)
	}
}

// all puts on the feed what is about no agent in particular.
func (f *feed) all(rec *schema.Record) {
	f.tell(record.Entry{Record: rec}, f.interest(bus.FeedOfAll))
}

// wanted reports whether anybody wants a record about an agent: who listens (heard), or
// who writes it down.
func (f *feed) wanted(agent string) (heard, wanted bool) {
	subject, err := bus.FeedSubject(agent)
	heard = err == nil && f.interest(subject)
	return heard, heard || f.recorder != nil
}

// tell hands a record to who writes it down, and to who listens, if anybody does.
func (f *feed) tell(e record.Entry, heard bool) {
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
			r := schema.ExpiredRecord(it)
			if f.recorder != nil {
				f.recorder.Put(record.Entry{Record: r})
			}
			f.publish(r)
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
		f.log.Debug("cannot publish a feed record", "error", err)
	}
}

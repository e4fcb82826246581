package load

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Call is a completed call.
type Call struct {
	// Kind is the kind of the call, one of a few words.
	Kind string
	// Due is when it should have started, and Started when it started. Ended is when it got
	// an answer, or when it was certain to get none.
	Due, Started, Ended time.Time
	// Apart means that its latency does not depend on the fabric alone. It counts for its
	// kind and for no other figure.
	Apart bool
	// Failed means that the call got no answer. It counts as waiting until Ended, which
	// must not be before its deadline: otherwise a call that failed at once would count as
	// fast.
	Failed bool
	// Unsent means that the call was not started. It counts as waiting until Ended.
	Unsent bool
}

// Counts are numbers of calls.
type Counts struct {
	// Offered counts calls that were due in a time. Failed and Unsent count some of them.
	// Answered counts calls whose answer came in it.
	Offered  int64 `json:"offered,omitzero"`
	Failed   int64 `json:"failed,omitzero"`
	Unsent   int64 `json:"unsent,omitzero"`
	Answered int64 `json:"answered,omitzero"`
}

func (c *Counts) add(o Counts) {
	c.Offered, c.Failed, c.Unsent, c.Answered = c.Offered+o.Offered, c.Failed+o.Failed, c.Unsent+o.Unsent, c.Answered+o.Answered
}

// Missed returns the number of calls without an answer.
func (c *Counts) Missed() int64 { return c.Failed + c.Unsent }

// A Second has the counts of one kind of calls in one second.
type Second struct {
	// Second is the number of the second since measuring began; it is negative before that.
	Second int    `json:"second"`
	Kind   string `json:"kind"`
	// Apart means that the latency counts only for this kind.
	Apart bool `json:"apart,omitzero"`
	Counts
	// Latency has the latency of the calls that were due in it, from their due times.
	Latency Histogram `json:"latency,omitzero"`
}

// A Cut has the counts since the last cut.
type Cut struct {
	Seconds []Second `json:"seconds,omitzero"`
	// Service has the durations of calls from their real start. Late has the delays of
	// their starts.
	Service Histogram `json:"service,omitzero"`
	Late    Histogram `json:"late,omitzero"`
}

// A Recorder counts calls. It is safe for concurrent use.
type Recorder struct {
	begin time.Time

	mu            sync.Mutex // guards what follows
	seconds       map[place]*Second
	service, late Histogram
}

type place struct {
	second int
	kind   string
}

// NewRecorder returns a recorder that counts seconds from begin.
func NewRecorder(begin time.Time) *Recorder {
	return &Recorder{begin: begin, seconds: map[place]*Second{}}
}

// at returns the second of a moment. The caller holds the lock.
func (r *Recorder) at(moment time.Time, kind string) *Second {
	since := moment.Sub(r.begin)
	p := place{second: int(since / time.Second), kind: kind}
	if since < 0 {
		p.second-- // round down, not towards zero
	}
	s := r.seconds[p]
	if s == nil {
		s = &Second{Second: p.second, Kind: kind}
		r.seconds[p] = s
	}
	return s
}

// Count counts a call.
func (r *Recorder) Count(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.at(c.Due, c.Kind)
	s.Offered++
	s.Apart = c.Apart
	s.Latency.Record(c.Ended.Sub(c.Due))
	switch {
	case c.Unsent:
		s.Unsent++
		return
	case c.Failed:
		s.Failed++
	default:
		r.at(c.Ended, c.Kind).Answered++
	}
	if !c.Due.Before(r.begin) && !c.Apart {
		r.service.Record(c.Ended.Sub(c.Started))
		r.late.Record(c.Started.Sub(c.Due))
	}
}

// Cut returns the counts since the last call of Cut.
func (r *Recorder) Cut() Cut {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Cut{Service: r.service, Late: r.late}
	for _, s := range slices.SortedFunc(maps.Values(r.seconds), func(a, b *Second) int {
		return cmp.Or(cmp.Compare(a.Second, b.Second), cmp.Compare(a.Kind, b.Kind))
	}) {
		c.Seconds = append(c.Seconds, *s)
	}
	r.seconds, r.service, r.late = map[place]*Second{}, Histogram{}, Histogram{}
	return c
}

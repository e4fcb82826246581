package load

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Call is one that is over.
type Call struct {
	// Kind is what it was about, one of a few words.
	Kind string
	// Due is when it should have started, Started when it did, Ended when there was
	// an answer, or none would come.
	Due, Started, Ended time.Time
	// Apart: how long it took is not the fabric's doing alone, so that it counts for
	// its kind and for no other figure.
	Apart bool
	// Failed: there was no answer. It counts as one that waited until Ended, which must
	// not be before its deadline: a call that failed at once would pass for a fast one.
	Failed bool
	// Unsent: it was not even started. It counts as one that waited until Ended.
	Unsent bool
}

// A Second is what was counted of one kind of calls in one second.
type Second struct {
	// Second counts from the beginning of what is measured; before it, it is negative.
	Second int    `json:"second"`
	Kind   string `json:"kind"`
	// Apart: the latency is its kind's alone.
	Apart bool `json:"apart,omitzero"`
	// Offered calls were due in it, and Failed and Unsent are some of them; Answered
	// are those whose answer came in it.
	Offered  int64 `json:"offered,omitzero"`
	Failed   int64 `json:"failed,omitzero"`
	Unsent   int64 `json:"unsent,omitzero"`
	Answered int64 `json:"answered,omitzero"`
	// Latency is how long the calls that were due in it took, from when they were due.
	Latency Histogram `json:"latency,omitzero"`
}

// A Cut is what was counted since the last cut.
type Cut struct {
	Seconds []Second `json:"seconds,omitzero"`
	// Service is how long calls took from when they were really started, and Late how
	// much later that was than it should have been.
	Service Histogram `json:"service,omitzero"`
	Late    Histogram `json:"late,omitzero"`
}

// A Recorder counts calls. It is safe for many goroutines.
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

// NewRecorder counts seconds from begin.
func NewRecorder(begin time.Time) *Recorder {
	return &Recorder{begin: begin, seconds: map[place]*Second{}}
}

// at is the second of a moment. The recorder is locked.
func (r *Recorder) at(moment time.Time, kind string) *Second {
	since := moment.Sub(r.begin)
	p := place{second: int(since / time.Second), kind: kind}
	if since < 0 {
		p.second-- // towards the past, not towards the beginning
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

// Cut takes what was counted since it was last called.
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

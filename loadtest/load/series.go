package load

import (
	"fmt"
	"maps"
	"slices"
)

// A Series combines the counts of recorders, of one process or of several. It ignores
// counts from before the measurement.
type Series struct {
	// Service and Late are the sums of all cuts.
	Service, Late Histogram

	rows  map[int]*row
	kinds map[string]*Kind
}

// row is a second of all kinds. Its histogram is encoded, because there may be thousands of
// rows.
type row struct {
	Row
	latency []byte
}

// A Row is a second of all kinds of calls.
type Row struct {
	Second                            int
	Offered, Failed, Unsent, Answered int64
}

// A Kind has the counts of one kind of calls over all seconds.
type Kind struct {
	Offered, Failed, Unsent, Answered int64
	Latency                           Histogram
}

// NewSeries returns an empty series.
func NewSeries() *Series { return &Series{rows: map[int]*row{}, kinds: map[string]*Kind{}} }

// Take adds a cut.
func (s *Series) Take(c *Cut) error {
	s.Service.Merge(&c.Service)
	s.Late.Merge(&c.Late)
	for i := range c.Seconds {
		if c.Seconds[i].Second < 0 {
			continue
		}
		if err := s.second(&c.Seconds[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Series) second(c *Second) error {
	k := s.kinds[c.Kind]
	if k == nil {
		k = new(Kind)
		s.kinds[c.Kind] = k
	}
	k.Offered, k.Failed, k.Unsent, k.Answered = k.Offered+c.Offered, k.Failed+c.Failed, k.Unsent+c.Unsent, k.Answered+c.Answered
	k.Latency.Merge(&c.Latency)
	r := s.rows[c.Second]
	if r == nil {
		r = &row{Row: Row{Second: c.Second}}
		s.rows[c.Second] = r
	}
	r.Offered, r.Failed, r.Unsent, r.Answered = r.Offered+c.Offered, r.Failed+c.Failed, r.Unsent+c.Unsent, r.Answered+c.Answered
	if c.Latency.Count() == 0 || c.Apart {
		return nil
	}
	h, err := r.histogram()
	if err != nil {
		return err
	}
	h.Merge(&c.Latency)
	r.latency, err = h.MarshalText()
	return err
}

func (r *row) histogram() (Histogram, error) {
	var h Histogram
	if err := h.UnmarshalText(r.latency); err != nil {
		return h, fmt.Errorf("the latencies of second %d: %w", r.Second, err)
	}
	return h, nil
}

// Kinds returns all kinds of calls, by name.
func (s *Series) Kinds() map[string]*Kind { return s.kinds }

// Rows returns the seconds with counts, in order.
func (s *Series) Rows() []Row {
	var all []Row
	for _, second := range slices.Sorted(maps.Keys(s.rows)) {
		all = append(all, s.rows[second].Row)
	}
	return all
}

// Between returns the counts of the calls that were due from one second until before
// another.
func (s *Series) Between(from, until int) (Kind, error) {
	var all Kind
	for second := from; second < until; second++ {
		r := s.rows[second]
		if r == nil {
			continue
		}
		h, err := r.histogram()
		if err != nil {
			return all, err
		}
		all.Offered, all.Failed, all.Unsent, all.Answered = all.Offered+r.Offered, all.Failed+r.Failed, all.Unsent+r.Unsent, all.Answered+r.Answered
		all.Latency.Merge(&h)
	}
	return all, nil
}

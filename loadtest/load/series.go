package load

import (
	"fmt"
	"maps"
	"slices"
)

// A Series puts together what recorders counted, of one process or of many. It
// leaves out what was counted before the beginning.
type Series struct {
	// Service and Late are those of all cuts.
	Service, Late Histogram

	rows  map[int]*row
	kinds map[string]*Kind
}

// row is a second of all kinds. Its histogram is encoded, as there may be thousands.
type row struct {
	Row
	latency []byte
}

// A Row is a second of all kinds of calls.
type Row struct {
	Second                            int
	Offered, Failed, Unsent, Answered int64
}

// A Kind is all seconds of one kind of calls.
type Kind struct {
	Offered, Failed, Unsent, Answered int64
	Latency                           Histogram
}

// NewSeries is one without any calls.
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

// Kinds are all kinds of calls, by name.
func (s *Series) Kinds() map[string]*Kind { return s.kinds }

// Rows are the seconds in which there was something, in order.
func (s *Series) Rows() []Row {
	var all []Row
	for _, second := range slices.Sorted(maps.Keys(s.rows)) {
		all = append(all, s.rows[second].Row)
	}
	return all
}

// Between is what was counted of the calls due from one second until before another.
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

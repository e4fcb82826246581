package load

import (
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
	Counts
	latency []byte
}

// A Row is a second of all kinds of calls.
type Row struct {
	Second int
	Counts
}

// A Kind has the counts of one kind of calls over all seconds.
type Kind struct {
	Counts
	Latency Histogram
}

// NewSeries returns an empty series.
func NewSeries() *Series { return &Series{rows: map[int]*row{}, kinds: map[string]*Kind{}} }

// Take adds a cut.
func (s *Series) Take(c *Cut) {
	s.Service.Merge(&c.Service)
	s.Late.Merge(&c.Late)
	for i := range c.Seconds {
		if c.Seconds[i].Second >= 0 {
			s.second(&c.Seconds[i])
		}
	}
}

func (s *Series) second(c *Second) {
	k := s.kinds[c.Kind]
	if k == nil {
		k = new(Kind)
		s.kinds[c.Kind] = k
	}
	k.add(c.Counts)
	k.Latency.Merge(&c.Latency)
	r := s.rows[c.Second]
	if r == nil {
		r = new(row)
		s.rows[c.Second] = r
	}
	r.add(c.Counts)
	if c.Latency.Count() > 0 && !c.Apart {
		h := r.histogram()
		h.Merge(&c.Latency)
		r.latency = h.encoded()
	}
}

func (r *row) histogram() *Histogram {
	h := new(Histogram)
	if err := h.UnmarshalText(r.latency); err != nil {
		panic(err) // it was encoded here
	}
	return h
}

// Kinds returns all kinds of calls, by name.
func (s *Series) Kinds() map[string]*Kind { return s.kinds }

// Rows returns the seconds with counts, in order.
func (s *Series) Rows() []Row {
	var all []Row
	for _, second := range slices.Sorted(maps.Keys(s.rows)) {
		all = append(all, Row{second, s.rows[second].Counts})
	}
	return all
}

// Between returns the counts of the calls that were due from one second until before
// another.
func (s *Series) Between(from, until int) Kind {
	var all Kind
	for second := from; second < until; second++ {
		if r := s.rows[second]; r != nil {
			all.add(r.Counts)
			all.Latency.Merge(r.histogram())
		}
	}
	return all
}

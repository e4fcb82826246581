package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of counted durations, with an error below 0.1 %.
const (
	finest  = 100 * time.Nanosecond
	longest = 2 * time.Minute
	digits  = 3
)

// A Histogram counts durations. Its text form is an encoded HDR histogram. The zero
// Histogram is empty. It is not safe for concurrent use.
type Histogram struct{ h *hdrhistogram.Histogram }

func (h *Histogram) counts() *hdrhistogram.Histogram {
	if h.h == nil {
		h.h = hdrhistogram.New(int64(finest), int64(longest), digits)
	}
	return h.h
}

// Record counts a duration. A duration above two minutes counts as two minutes.
func (h *Histogram) Record(d time.Duration) {
	_ = h.counts().RecordValue(int64(min(max(d, 0), longest))) // the value is within the range
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	if other != nil && other.h != nil {
		h.counts().Merge(other.h)
	}
}

// Count returns how many durations were counted.
func (h *Histogram) Count() int64 {
	if h == nil || h.h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// At returns the quantile q, in seconds; 0: the histogram is empty. At(1) is the longest
// duration.
func (h *Histogram) At(q float64) float64 {
	if h.Count() == 0 {
		return 0
	}
	if q >= 1 {
		return time.Duration(h.h.Max()).Seconds()
	}
	return time.Duration(h.h.ValueAtQuantile(q * 100)).Seconds()
}

// Each calls count with each counted duration and its number.
func (h *Histogram) Each(count func(d time.Duration, n int64)) {
	if h.Count() == 0 {
		return
	}
	for _, bar := range h.h.Distribution() {
		if bar.Count > 0 {
			count(time.Duration(bar.To), bar.Count)
		}
	}
}

// MarshalText returns the encoded HDR histogram.
func (h *Histogram) MarshalText() ([]byte, error) {
	if h.Count() == 0 {
		return nil, nil
	}
	return h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// encoded is MarshalText, which has no error for durations within the range.
func (h *Histogram) encoded() []byte {
	text, err := h.MarshalText()
	if err != nil {
		panic(err)
	}
	return text
}

// UnmarshalText reads an encoded HDR histogram.
func (h *Histogram) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		h.h = nil
		return nil
	}
	h.h, err = hdrhistogram.Decode(text)
	return err
}

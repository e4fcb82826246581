package otlp

import (
	"cmp"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// sampler returns the sampler in OTEL_TRACES_SAMPLER. By default the parent's decision counts, so
// that a trace is kept whole or not at all.
func (r *reading) sampler() trace.Sampler {
	name := r.env(envSampler)
	name = cmp.Or(name, "parentbased_always_on")
	root, parents := strings.CutPrefix(name, "parentbased_")
	var share float64
	switch root {
	case "always_on":
		share = 1
	case "always_off":
	case "traceidratio":
		share = r.share()
	default:
		r.fault("%s is %.40q; use always_on, always_off or traceidratio, each also with the prefix parentbased_", envSampler, name)
	}
	chosen := ratio(share)
	if !parents {
		return chosen
	}
	return func(parent *trace.Context, id [16]byte) bool {
		if parent != nil {
			return parent.Sampled()
		}
		return chosen(nil, id)
	}
}

// share returns the share of the traces to keep.
func (r *reading) share() float64 {
	v := r.env(envSampleArg)
	if v == "" {
		return 1
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		r.fault("%s is %.40q; use a number from 0 to 1, such as 0.01", envSampleArg, v)
	}
	return f
}

// ratio keeps a share of all traces. The id decides, so that all processes with the same share keep
// the same traces.
func ratio(share float64) trace.Sampler {
	below := uint64(share * (1 << 63))
	return func(_ *trace.Context, id [16]byte) bool { return binary.BigEndian.Uint64(id[8:])>>1 < below }
}

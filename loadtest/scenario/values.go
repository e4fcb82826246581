package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

func sorted(known keys) []string { return slices.Sorted(maps.Keys(known)) }

// scalar is the text of a plain value.
func (r *reader) scalar(n *yaml.Node, hint string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		what := "nothing"
		if n.Tag != "!!null" {
			what = kindName(n)
		}
		r.fault(n, fmt.Sprintf("this is %s instead of a value", what), hint)
		return "", false
	}
	return n.Value, true
}

// text reads a word.
func (r *reader) text(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if s, ok := r.scalar(n, "write a word"); ok {
			*to = s
		}
	}
}

// word reads one of some words.
func word[W ~string](r *reader, to *W, known ...W) func(*yaml.Node) {
	return func(n *yaml.Node) {
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = string(k)
		}
		hint := "write " + strings.Join(names, " or ")
		s, ok := r.scalar(n, hint)
		switch {
		case !ok:
		case !slices.Contains(known, W(s)):
			r.fault(n, fmt.Sprintf("unknown value %q", s), hint)
		default:
			*to = W(s)
		}
	}
}

// truth reads true or false.
func (r *reader) truth(to *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := r.scalar(n, "write true or false")
		switch {
		case !ok:
		case n.Tag != "!!bool":
			r.fault(n, fmt.Sprintf("%q is not true or false", s), "write true or false")
		default:
			*to = s == "true"
		}
	}
}

// whole reads a whole number.
func whole[N int | int64 | uint64](r *reader, to *N) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const hint = "write a whole number such as 200"
		s, ok := r.scalar(n, hint)
		if !ok {
			return
		}
		v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		switch {
		case err != nil:
			r.fault(n, fmt.Sprintf("%q is not a whole number", s), hint)
		case v < 0:
			r.fault(n, fmt.Sprintf("%d is negative", v), hint)
		default:
			*to = N(v)
		}
	}
}

// number reads a plain number.
func (r *reader) number(to *float64) func(*yaml.Node) {
	return r.unit(to, "write a number such as 0.1", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

// share reads a part of all, "5%" or 0.05.
func (r *reader) share(to *float64) func(*yaml.Node) {
	const hint = "write a share from 0% to 100%, such as 5%"
	return func(n *yaml.Node) {
		v := 0.0
		before := len(r.faults)
		r.unit(&v, hint, func(s string) (float64, error) {
			part, percent := strings.CutSuffix(s, "%")
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if percent {
				v /= 100
			}
			return v, err
		})(n)
		switch {
		case len(r.faults) > before:
		case v > 1:
			r.fault(n, fmt.Sprintf("%q is more than 100%%", n.Value), hint)
		default:
			*to = v
		}
	}
}

// rate reads how often something is done, "300/s" or 300.
func (r *reader) rate(to *float64) func(*yaml.Node) {
	return r.unit(to, "write a rate per second, such as 300/s", func(s string) (float64, error) {
		part, _ := strings.CutSuffix(s, "/s")
		return strconv.ParseFloat(strings.TrimSpace(part), 64)
	})
}

// unit reads a number in some form that is not negative.
func (r *reader) unit(to *float64, hint string, read func(string) (float64, error)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := r.scalar(n, hint)
		if !ok {
			return
		}
		v, err := read(s)
		switch {
		case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
			r.fault(n, fmt.Sprintf("%q is not valid here", s), hint)
		case v < 0:
			r.fault(n, fmt.Sprintf("%q is negative", s), hint)
		default:
			*to = v
		}
	}
}

// duration reads a time with its unit.
func (r *reader) duration(to *schema.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const hint = "write a duration with its unit, such as 500ms, 30s or 10m"
		s, ok := r.scalar(n, hint)
		if !ok {
			return
		}
		d, err := time.ParseDuration(s)
		switch _, bare := strconv.ParseFloat(s, 64); {
		case err != nil && bare == nil:
			r.fault(n, fmt.Sprintf("%q has no unit", s), fmt.Sprintf("write %ss for seconds, or %sms", s, s))
		case err != nil:
			r.fault(n, fmt.Sprintf("%q is not a duration", s), hint)
		case d < 0:
			r.fault(n, fmt.Sprintf("%q is negative", s), hint)
		default:
			*to = schema.Duration(d)
		}
	}
}

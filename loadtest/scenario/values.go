package scenario

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// words returns the values of a type with a fixed set of values; nil: the type has any
// value.
func words(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[Kind]():
		return Kinds()
	case reflect.TypeFor[field.Kind]():
		return []field.Kind{field.Local, field.Embedded, field.External}
	case reflect.TypeFor[load.Law]():
		return []load.Law{load.Poisson, load.Constant}
	case reflect.TypeFor[faults.Kind]():
		return faults.All()
	}
	return nil
}

// value reads a node into a Go value. The keys of a struct are the names in its json tags. The
// tag "as" names the form of a number: rate or share.
func (r *reader) value(path string, n *yaml.Node, to reflect.Value, as string) {
	if to.Type() == reflect.TypeFor[schema.Duration]() {
		r.duration(n, to)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		r.mapping(path, n, to)
	case reflect.Map:
		r.lives(path, n, to)
	case reflect.Slice:
		r.list(path, n, to)
	case reflect.String:
		r.text(n, to)
	case reflect.Bool:
		r.truth(n, to)
	case reflect.Float64:
		r.number(n, to, as)
	default:
		r.whole(n, to)
	}
}

// mapping reads a struct. Other keys are faults.
func (r *reader) mapping(path string, n *yaml.Node, to reflect.Value) {
	known := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(to.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = f
	}
	r.keys(path, n, slices.Sorted(maps.Keys(known)), func(path, key string, n *yaml.Node) {
		r.value(path, n, to.FieldByIndex(known[key].Index), known[key].Tag.Get("as"))
	})
}

// lives reads the durations of kinds of processes.
func (r *reader) lives(path string, n *yaml.Node, to reflect.Value) {
	to.Set(reflect.MakeMap(to.Type()))
	r.keys(path, n, []string{field.Broker, Daemon, Driver, Producer, field.Worker}, func(_, key string, n *yaml.Node) {
		d := reflect.New(to.Type().Elem()).Elem()
		r.duration(n, d)
		to.SetMapIndex(reflect.ValueOf(key), d)
	})
}

// keys reads a mapping. Keys that are not in known are faults.
func (r *reader) keys(path string, n *yaml.Node, known []string, read func(path, key string, n *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, fmt.Sprintf("this is %s instead of a mapping", kindName(n)), "write some of "+strings.Join(known, ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			hint := "write one of " + strings.Join(known, ", ")
			if near := hooksyaml.Nearest(key.Value, known...); near != "" {
				hint = "write " + near
			}
			r.fault(key, fmt.Sprintf("unknown key %q", key.Value), hint)
		case seen[key.Value]:
			r.fault(key, fmt.Sprintf("the key %q occurs twice", key.Value), "remove one of them")
		default:
			seen[key.Value] = true
			at := joined(path, key.Value)
			r.places[at] = value
			read(at, key.Value, value)
		}
	}
}

// list reads each value of a list.
func (r *reader) list(path string, n *yaml.Node, to reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, fmt.Sprintf("this is %s instead of a list", kindName(n)), "begin each entry with a dash")
		return
	}
	for i, e := range n.Content {
		at := joined(path, fmt.Sprint(i+1))
		r.places[at] = e
		one := reflect.New(to.Type().Elem()).Elem()
		r.value(at, e, one, "")
		to.Set(reflect.Append(to, one))
	}
}

func joined(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// scalar returns the text of a plain value.
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

// text reads a word. If its type has a fixed set of values, other words are faults.
func (r *reader) text(n *yaml.Node, to reflect.Value) {
	hint, known := "write a word", []string(nil)
	if all := words(to.Type()); all != nil {
		for i := range reflect.ValueOf(all).Len() {
			known = append(known, reflect.ValueOf(all).Index(i).String())
		}
		hint = "write " + strings.Join(known, " or ")
	}
	s, ok := r.scalar(n, hint)
	switch {
	case !ok:
	case known != nil && !slices.Contains(known, s):
		r.fault(n, fmt.Sprintf("unknown value %q", s), hint)
	default:
		to.SetString(s)
	}
}

// truth reads true or false.
func (r *reader) truth(n *yaml.Node, to reflect.Value) {
	const hint = "write true or false"
	s, ok := r.scalar(n, hint)
	switch {
	case !ok:
	case n.Tag != "!!bool":
		r.fault(n, fmt.Sprintf("%q is not true or false", s), hint)
	default:
		to.SetBool(s == "true")
	}
}

// whole reads a whole number.
func (r *reader) whole(n *yaml.Node, to reflect.Value) {
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
	case to.CanUint():
		to.SetUint(uint64(v))
	default:
		to.SetInt(v)
	}
}

// number reads a number: a plain one, a rate such as "300/s", or a share such as "5%".
func (r *reader) number(n *yaml.Node, to reflect.Value, as string) {
	suffix, unit, most, hint := "", 1.0, math.MaxFloat64, "write a number such as 0.1"
	switch as {
	case "rate":
		suffix, hint = "/s", "write a rate per second, such as 300/s"
	case "share":
		suffix, unit, most, hint = "%", 100, 1, "write a share from 0% to 100%, such as 5%"
	}
	s, ok := r.scalar(n, hint)
	if !ok {
		return
	}
	plain, united := s, false
	if suffix != "" {
		plain, united = strings.CutSuffix(s, suffix)
		plain = strings.TrimSpace(plain)
	}
	v, err := strconv.ParseFloat(plain, 64)
	if united {
		v /= unit
	}
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		r.fault(n, fmt.Sprintf("%q is not valid here", s), hint)
	case v < 0:
		r.fault(n, fmt.Sprintf("%q is negative", s), hint)
	case v > most:
		r.fault(n, fmt.Sprintf("%q is more than 100%%", s), hint)
	default:
		to.SetFloat(v)
	}
}

// duration reads a time with its unit.
func (r *reader) duration(n *yaml.Node, to reflect.Value) {
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
		to.SetInt(int64(d))
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return fmt.Sprintf("%q", n.Value)
}

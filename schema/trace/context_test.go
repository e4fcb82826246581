package trace_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema/trace"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		parent, state string
		want          string // its traceparent and its tracestate; empty: it is invalid
	}{
		"a sampled one":                        {parent, "vendor=1", parent + " vendor=1"},
		"one that is not sampled":              {parent[:53] + "00", "", parent[:53] + "00 "},
		"unknown flags are not passed on":      {parent[:53] + "ff", "", parent + " "},
		"a later version with more behind it":  {"cc" + parent[2:] + "-more", "", parent + " "},
		"a state that is too long is left out": {parent, strings.Repeat("a", 513), parent + " "},
		"a state of two lines is left out":     {parent, "a=1\r\nHook-Left: 1h", parent + " "},
		"none":                                 {"", "a=1", ""},
		"one cut short":                        {parent[:54], "", ""},
		"version 00 with more behind it":       {parent + "-more", "", ""},
		"a later version that runs on":         {"cc" + parent[2:] + "more", "", ""},
		"the version that is forbidden":        {"ff" + parent[2:], "", ""},
		"digits in upper case":                 {strings.ToUpper(parent), "", ""},
		"no trace":                             {"00-" + strings.Repeat("0", 32) + parent[35:], "", ""},
		"no span":                              {parent[:36] + strings.Repeat("0", 16) + parent[52:], "", ""},
		"other letters":                        {parent[:10] + "g" + parent[11:], "", ""},
		"other separators":                     {strings.ReplaceAll(parent, "-", "_"), "", ""},
		"endless":                              {"cc" + parent[2:] + "-" + strings.Repeat("a", 1<<20), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := trace.Parse(c.parent, c.state); p != nil {
				got = p.Parent() + " " + p.State
			}
			if got != c.want {
				t.Errorf("it is read as %q, not as %q", got, c.want)
			}
		})
	}
}

// Any input is parsed without a panic, and a valid one is written so that others read the
// same.
func FuzzParse(f *testing.F) {
	f.Add(parent, "a=1")
	f.Add("cc"+parent[2:]+"-x", "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c := trace.Parse(parent, state)
		if c == nil {
			return
		}
		if d := cmp.Diff(c, trace.Parse(c.Parent(), c.State)); d != "" {
			t.Error(d)
		}
		if len(c.State) > trace.MaxState || strings.ContainsAny(c.State, "\r\n") {
			t.Errorf("the state %q would go out", c.State)
		}
	})
}

func TestAContextIsCarriedByContext(t *testing.T) {
	if c := trace.From(trace.With(t.Context(), nil)); c != nil {
		t.Errorf("no place is %+v", c)
	}
	want := trace.Parse(parent, "")
	if got := trace.From(context.WithoutCancel(trace.With(t.Context(), want))); got != want {
		t.Errorf("it is at %+v, not at %+v", got, want)
	}
}

// The id is returned only if a collector has the trace.
func TestTheIDOfATrace(t *testing.T) {
	for name, c := range map[string]struct {
		at   *trace.Context
		want string
	}{
		"one that is kept":     {trace.Parse(parent, ""), "4bf92f3577b34da6a3ce929d0e0e4736"},
		"one that is not kept": {trace.Parse(parent[:53]+"00", ""), ""},
		"none":                 {nil, ""},
	} {
		if got := c.at.ID(); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

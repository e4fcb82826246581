package trace_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// recorder has the ended spans.
type recorder []*trace.Span

func (k *recorder) Take(s *trace.Span) { *k = append(*k, s) }

// tracer records the spans of sampled traces.
func tracer(k *recorder) *trace.Tracer {
	return &trace.Tracer{Sink: k, Sample: func(p *trace.Context, _ [16]byte) bool { return p == nil || p.Sampled() }}
}

func TestChildSpansHaveTheirParent(t *testing.T) {
	var all recorder
	from := trace.Parse(parent, "vendor=1")
	s := tracer(&all).Start(from, trace.Server, "judge", "PreToolUse")
	child := s.Child(trace.Client, "batch", "")
	child.Done()
	s.Text(trace.Tool, "Bash")
	s.Mark(trace.Denied, false)
	s.Done()
	s.Done()
	if len(all) != 2 || all[0] != child || all[1] != s {
		t.Fatalf("%d spans were handed on; the child and its parent are, once each", len(all))
	}
	if s.Parent != from.Span || s.Context.Trace != from.Trace || s.Context.State != "vendor=1" || !s.Context.Sampled() {
		t.Errorf("the span of a caller's trace is at %+v, below %x", s.Context, s.Parent)
	}
	if child.Parent != s.Context.Span || child.Context.Trace != from.Trace || child.Context.Span == s.Context.Span {
		t.Errorf("its child is at %+v, below %x", child.Context, child.Parent)
	}
	if s.Name != "judge PreToolUse" || child.Name != "batch" || len(s.Attributes) != 1 {
		t.Errorf("their names are %q and %q, and the first has %+v", s.Name, child.Name, s.Attributes)
	}
	if root := tracer(&all).Start(nil, trace.Server, "judge", ""); root.Parent != [8]byte{} || trace.Parse(root.Context.Parent(), "") == nil {
		t.Errorf("a trace that begins here is at %+v, below %x", root.Context, root.Parent)
	}
}

// A program that does not record a trace marks it for later programs, which would
// otherwise record a part of it.
func TestAnUnrecordedTraceStaysUnrecorded(t *testing.T) {
	var all recorder
	s := tracer(&all).Start(trace.Parse(parent[:53]+"00", ""), trace.Server, "judge", "")
	child := s.Child(trace.Client, "batch", "")
	child.Text(trace.Tool, "Bash")
	child.Done()
	s.Done()
	next := child.Or(nil)
	if len(all) > 0 || next == nil || next.Sampled() || next.Parent()[:35] != parent[:35] {
		t.Errorf("%d spans were handed on, and it goes on at %+v", len(all), next)
	}
}

func TestAttributesAreLimited(t *testing.T) {
	var all recorder
	s := tracer(&all).Start(nil, trace.Server, "judge", "")
	s.Text(trace.Agent, strings.Repeat("ü", 1000))
	s.Fail("\xff")
	if v := s.Attributes[0].Value.(string); len(v) > 256+2 || strings.ToValidUTF8(v, "") != v {
		t.Errorf("the value has %d bytes: %q", len(v), v)
	}
	if s.Error != "\uFFFD" {
		t.Errorf("the error with invalid UTF-8 is %q", s.Error)
	}
}

// A disabled tracer costs nothing, so it may be called at every step.
func TestADisabledTracerCostsNothing(t *testing.T) {
	var none *trace.Tracer
	from := trace.Parse(parent, "")
	n := testing.AllocsPerRun(100, func() {
		s := none.Start(from, trace.Server, "judge", "PreToolUse")
		c := s.Child(trace.Client, "batch", "default")
		c.Text(trace.Pool, "default")
		c.Number(trace.Hooks, 8)
		c.Mark(trace.Denied, true)
		c.Fail("no")
		c.Done()
		if s.Or(from) != from || s.Kept() {
			t.Error("a trace of others does not go on")
		}
		s.Done()
	})
	if n != 0 {
		t.Errorf("%v objects are made", n)
	}
}

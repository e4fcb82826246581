package trace_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// kept are the spans that ended.
type kept []*trace.Span

func (k *kept) Take(s *trace.Span) { *k = append(*k, s) }

// tracer keeps the spans of those traces that are sampled where they come from.
func tracer(k *kept) *trace.Tracer {
	return &trace.Tracer{Sink: k, Sample: func(p *trace.Context, _ [16]byte) bool { return p == nil || p.Sampled() }}
}

func TestSpansHangTogether(t *testing.T) {
	var all kept
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
		t.Errorf("they are called %q and %q, and of the first %+v is told", s.Name, child.Name, s.Attributes)
	}
	if root := tracer(&all).Start(nil, trace.Server, "judge", ""); root.Parent != [8]byte{} || trace.Parse(root.Context.Parent(), "") == nil {
		t.Errorf("a trace that begins here is at %+v, below %x", root.Context, root.Parent)
	}
}

// Who does not keep a trace says so to those who come after, or they would keep a part of it.
func TestATraceThatIsNotKeptGoesOnAsSuch(t *testing.T) {
	var all kept
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

func TestNamesOfAgentsAreBounded(t *testing.T) {
	var all kept
	s := tracer(&all).Start(nil, trace.Server, "judge", "")
	s.Text(trace.Agent, strings.Repeat("ü", 1000))
	s.Fail("\xff")
	if v := s.Attributes[0].Value.(string); len(v) > 256+2 || strings.ToValidUTF8(v, "") != v {
		t.Errorf("%d bytes are told: %q", len(v), v)
	}
	if s.Error != "\uFFFD" {
		t.Errorf("what no reader could read is told as %q", s.Error)
	}
}

// What costs nothing where nobody traces can stand on the path of every call.
func TestNobodyTracesForNothing(t *testing.T) {
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

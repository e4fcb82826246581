package trace_test

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// printer is a Sink that prints spans.
type printer struct{}

func (printer) Take(s *trace.Span) { fmt.Println(s.Name, s.Context.ID()) }

// How do I continue the trace of a request?
func Example_howDoIContinueATrace() {
	tracer := &trace.Tracer{Sink: printer{}, Sample: func(parent *trace.Context, _ [16]byte) bool { return parent.Sampled() }}
	parent := trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")

	span := tracer.Start(parent, trace.Server, "judge", "PreToolUse")
	span.Text(trace.Tool, "Bash")
	span.Done()
	// Output:
	// judge PreToolUse 0af7651916cd43dd8448eb211c80319c
}

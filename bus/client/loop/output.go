package loop

import (
	"github.com/hookfabric/hookfabric/schema"
)

// A ChunkKind says what a chunk of the visible output is.
type ChunkKind string

// The kinds of chunks.
const (
	TextChunk       ChunkKind = "text"
	ToolCallChunk   ChunkKind = "tool_call"
	ToolResultChunk ChunkKind = "tool_result"
	// InjectionChunk is content that hooks or the queue gave the model to read.
	InjectionChunk ChunkKind = "injection"
	// RetryChunk is why the model is asked once more.
	RetryChunk   ChunkKind = "retry"
	RestartChunk ChunkKind = "restart"
	// EndChunk is the last one: the error, if there is one.
	EndChunk ChunkKind = "end"
)

// A Chunk is a piece of what somebody who watches the agent sees.
type Chunk struct {
	Kind ChunkKind
	// Text is what to show. An injection's begins with "[INJECTION] " and who it is from.
	Text string
	// Iteration counts the model calls, from 1; 0: before the first.
	Iteration int
	// Call is the tool's call, with the input that hooks left, and Result what came of it.
	Call   *schema.ToolCall
	Result *schema.ToolOutcome
	// Source is who an injection is from: its source, or the hook that made it.
	Source string
}

// say shows a chunk.
func (r *run) say(c Chunk) {
	if r.loop.opt.Output == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Iteration = r.iteration
	r.loop.opt.Output(c)
}

// sayInjection shows an injection.
func (r *run) sayInjection(in *schema.Injection) {
	source := first(in.Source, in.Hook)
	text := "[INJECTION] "
	if source != "" {
		text += source + ": "
	}
	r.say(Chunk{Kind: InjectionChunk, Text: text + in.Content, Source: source})
}

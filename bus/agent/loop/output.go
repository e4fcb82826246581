package loop

import (
	"github.com/hookfabric/hookfabric/schema"
)

// A ChunkKind is the kind of a chunk of output.
type ChunkKind string

// The kinds of chunks.
const (
	TextChunk       ChunkKind = "text"
	ToolCallChunk   ChunkKind = "tool_call"
	ToolResultChunk ChunkKind = "tool_result"
	// InjectionChunk is a text from a hook or the queue for the model.
	InjectionChunk ChunkKind = "injection"
	// RetryChunk is the reason for another model call.
	RetryChunk   ChunkKind = "retry"
	RestartChunk ChunkKind = "restart"
	// EndChunk is the last chunk. It contains the error, if any.
	EndChunk ChunkKind = "end"
)

// A Chunk is a piece of the agent's visible output.
type Chunk struct {
	Kind ChunkKind
	// Text is the text to show. An injection's text begins with "[INJECTION] " and its source.
	Text string
	// Iteration counts the model calls, from 1; 0: before the first call.
	Iteration int
	// Call is the tool call, with the input after all hooks. Result is its result.
	Call   *schema.ToolCall
	Result *schema.ToolOutcome
	// Source is the source of an injection, or the hook that made it.
	Source string
}

// say sends a chunk to Options.Output.
func (r *run) say(c Chunk) {
	if r.loop.opt.Output == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Iteration = r.iteration
	r.loop.opt.Output(c)
}

// sayInjection sends an injection to Options.Output.
func (r *run) sayInjection(in *schema.Injection) {
	source := first(in.Source, in.Hook)
	text := "[INJECTION] "
	if source != "" {
		text += source + ": "
	}
	r.say(Chunk{Kind: InjectionChunk, Text: text + in.Content, Source: source})
}

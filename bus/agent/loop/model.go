package loop

import (
	"context"

	"github.com/hookfabric/hookfabric/schema"
)

// A Model answers a conversation.
type Model interface {
	// Call returns the model's message: a text, tool calls, or both. An error ends the query,
	// so a model retries by itself.
	Call(ctx context.Context, r *Request) (schema.Message, error)
}

// A ModelFunc is a function that acts as a [Model].
type ModelFunc func(ctx context.Context, r *Request) (schema.Message, error)

// Call calls f.
func (f ModelFunc) Call(ctx context.Context, r *Request) (schema.Message, error) { return f(ctx, r) }

// A Request is the input of a model call. It is a copy, which the model may change.
type Request struct {
	// Messages is the conversation, with system messages first.
	Messages []schema.Message
	// Tools lists the tools that the model may call.
	Tools []Tool
	// Iteration counts the model calls of the query, from 1.
	Iteration int
}

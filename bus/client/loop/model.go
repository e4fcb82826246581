package loop

import (
	"context"

	"github.com/hookfabric/hookfabric/schema"
)

// A Model answers a conversation.
type Model interface {
	// Call returns the model's message: a text, calls of tools, or both. An error
	// ends the query; what may be tried again is the model's own business.
	Call(ctx context.Context, r *Request) (schema.Message, error)
}

// A ModelFunc is a function as a [Model].
type ModelFunc func(ctx context.Context, r *Request) (schema.Message, error)

// Call calls f.
func (f ModelFunc) Call(ctx context.Context, r *Request) (schema.Message, error) { return f(ctx, r) }

// A Request is what a model is asked. It is a copy: a model may change it.
type Request struct {
	// Messages are the conversation, the system's first.
	Messages []schema.Message
	// Tools are what the model may ask for.
	Tools []Tool
	// Iteration counts the model calls of the query, from 1.
	Iteration int
}

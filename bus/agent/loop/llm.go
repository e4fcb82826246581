package loop

import (
	"context"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// A Caller calls a model's API. The client of package llm is one.
type Caller interface {
	Call(ctx context.Context, messages []schema.Message, tools []render.Tool) (schema.Message, error)
}

// LLM returns the [Model] that calls a model's API.
func LLM(c Caller) Model {
	return ModelFunc(func(ctx context.Context, r *Request) (schema.Message, error) {
		tools := make([]render.Tool, 0, len(r.Tools))
		for i := range r.Tools {
			t := &r.Tools[i]
			tools = append(tools, render.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
		}
		return c.Call(ctx, r.Messages, tools)
	})
}

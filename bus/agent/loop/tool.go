package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Tool is a function that the model may call.
type Tool struct {
	// Name is the tool's name, unique in the loop.
	Name string
	// Description tells the model what the tool does.
	Description string
	// Schema is the JSON Schema of the input, which is an object; absent: any object.
	Schema jsontext.Value
	// Timeout limits a call; 0: only the query's context limits it.
	Timeout time.Duration
	// Call runs the tool. The input is a JSON object. The model reads the result as JSON, and a
	// [jsontext.Value] unchanged. The model also reads an error, which does not end the query.
	// Calls of one turn run concurrently.
	Call func(ctx context.Context, input jsontext.Value) (any, error)

	fault error
}

// ToolFunc makes a tool of a function. It derives the JSON Schema of the input from the fields
// of In: their JSON names and options, and the tag `description`. A field is required unless it
// is a pointer, omitzero or omitempty. To use another schema, set the tool's Schema.
func ToolFunc[In, Out any](name, description string, f func(context.Context, In) (Out, error)) Tool {
	s, fault := schemaOf[In]()
	return Tool{
		Name: name, Description: description, Schema: s, fault: fault,
		Call: func(ctx context.Context, input jsontext.Value) (any, error) {
			var in In
			if err := schema.Unmarshal(input, &in); err != nil {
				return nil, fmt.Errorf("the input does not fit the tool's schema: %w", err)
			}
			return f(ctx, in)
		},
	}
}

// cloneTools returns a deep copy.
func cloneTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Schema = tools[i].Schema.Clone()
	}
	return tools
}

// checkTools returns the tools by name, or an error with all faults.
func checkTools(tools []Tool) (map[string]*Tool, error) {
	var errs []error
	byName := make(map[string]*Tool, len(tools))
	for i := range tools {
		t := &tools[i]
		switch {
		case t.Name == "":
			errs = append(errs, fmt.Errorf("tool %d has no name; write one", i+1))
		case t.Call == nil:
			errs = append(errs, fmt.Errorf("the tool %q has no Call; write the function that runs it", t.Name))
		case byName[t.Name] != nil:
			errs = append(errs, fmt.Errorf("there are two tools %q; give one another name", t.Name))
		case len(t.Schema) > 0 && (t.Schema.Kind() != '{' || !t.Schema.IsValid()):
			errs = append(errs, fmt.Errorf("the schema of the tool %q is not a JSON object", t.Name))
		}
		if t.fault != nil {
			errs = append(errs, fmt.Errorf("the input of the tool %q %w", t.Name, t.fault))
		}
		byName[t.Name] = t
	}
	return byName, errors.Join(errs...)
}

// run calls the tool with an object. Every failure is an outcome.
func (t *Tool) run(ctx context.Context, c schema.ToolCall) schema.ToolOutcome {
	out := schema.ToolOutcome{ID: c.ID, Name: c.Name}
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.Timeout, fmt.Errorf("the tool did not answer within %v", t.Timeout))
		defer cancel()
	}
	v, err := guarded(ctx, "the tool", func(ctx context.Context) (any, error) { return t.Call(ctx, c.Input.Clone()) })
	if err == nil {
		if out.Output, err = encode(v); err != nil {
			err = fmt.Errorf("what the tool returned cannot be written as JSON: %w", err)
		}
	}
	if err != nil {
		out.Error = first(err.Error(), "the tool failed without a message")
	}
	return out
}

// encode encodes a tool's result as JSON that every client accepts.
func encode(v any) (jsontext.Value, error) {
	if raw, ok := v.(jsontext.Value); ok && len(raw) > 0 {
		if !raw.IsValid(jsontext.AllowInvalidUTF8(true)) {
			return nil, errors.New("it is not valid JSON")
		}
		return raw, nil
	}
	data, err := schema.Marshal(v)
	if err != nil {
		return nil, err
	}
	return data, nil
}

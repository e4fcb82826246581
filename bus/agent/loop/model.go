package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
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

// An Ending says how a query ended.
type Ending string

// The endings. Run returns an error for all except the first two.
const (
	// Answered means that the model gave a final response.
	Answered Ending = "answered"
	// Stopped means that a hook ended the query with its own response.
	Stopped Ending = "stopped"
	// Failed means that a hook ended the query with an error.
	Failed Ending = "failed"
	// Rejected means that a hook refused the prompt.
	Rejected Ending = "rejected"
	// Terminated means that the fabric ended the run.
	Terminated Ending = "terminated"
	// Cancelled means that the query's context ended.
	Cancelled Ending = "cancelled"
	// ModelError means that the model call failed.
	ModelError Ending = "model_error"
	// MaxIterations means that the query exceeded its limit of model calls.
	MaxIterations Ending = "max_iterations"
)

// The reasons why a query has no answer. Errors of [Loop.Run] wrap one of them, or the cause of
// the context's end.
var (
	ErrFailed        = errors.New("a hook failed the query")
	ErrRejected      = errors.New("the prompt was refused")
	ErrTerminated    = errors.New("the run was ended")
	ErrCancelled     = errors.New("the query was cancelled")
	ErrModel         = errors.New("the model call failed")
	ErrMaxIterations = errors.New("the query reached its maximum number of model calls")
	// ErrRunning means that the loop runs another query. Run did nothing.
	ErrRunning = errors.New("the loop runs another query; wait for it, or make another loop")
)

// A Response is the result of a query. Hooks of QueryEnd read it, and Run returns it.
type Response struct {
	// Content is the answer's text.
	Content string `json:"content"`
	// Message is the whole message of the answer; nil: the query has no answer.
	Message *schema.Message `json:"message,omitzero"`
	// Status says how the query ended. No hook can change it, or the fields below.
	Status Ending `json:"status"`
	// Error says why there is no answer.
	Error string `json:"error,omitzero"`
	// Reason is the reason of the hook that ended the query.
	Reason string `json:"reason,omitzero"`
	// Iterations is the number of model calls.
	Iterations int `json:"iterations"`
	// HookErrors lists errors of hooks. If there are very many, it lists only the first.
	HookErrors []string `json:"hook_errors,omitzero"`
}

// mostErrors limits the hook errors of a response.
const mostErrors = 200

func (r Response) clone() Response {
	if r.Message != nil {
		m := cloneMessage(*r.Message)
		r.Message = &m
	}
	r.HookErrors = slices.Clone(r.HookErrors)
	return r
}

// revised returns r with the answer of next; how the query ended stays. If next changed
// only one of content and message, the other follows.
func (r Response) revised(next Response) Response {
	old := r
	if next.Message != nil {
		m := closing(*next.Message)
		if r.Message != nil {
			m = revised(*r.Message, m)
		}
		if next.Content == old.Content {
			next.Content = m.Content
		}
		next.Message = &m
	}
	r.Content, r.Message = next.Content, next.Message
	if r.Message != nil && r.Message.Content != r.Content {
		m := *r.Message
		m.Content, m.Native = r.Content, nil
		r.Message = &m
	}
	return r
}

// read applies a remote hook's rewrite: a string, or an object such as a Response or a
// message.
func (r Response) read(data jsontext.Value) (Response, error) {
	next := r.clone()
	switch data.Kind() {
	case '"':
		if err := schema.Unmarshal(data, &next.Content); err != nil {
			return r, err
		}
	case '{':
		if err := schema.Unmarshal(data, &next); err != nil {
			return r, fmt.Errorf("the response cannot be read: %w", err)
		}
	default:
		return r, fmt.Errorf("the response is %s; write a string, or an object with its text in content", schema.KindName(data.Kind()))
	}
	return r.revised(next), nil
}

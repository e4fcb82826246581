// Package render turns verdicts into messages that an agent loop appends to
// its conversation as they are: in the shape of the API that its model speaks. A loop
// that keeps its conversation in no API's shape has all of it turned into a request by
// [Conversation], and the API's answer into a message by [Read]; what is said below about
// results and notes holds there, too.
//
// Whatever hooks inject arrives whole. What is for the tool's result stands with
// the result, in the order of the hooks; what is for a message of its own comes
// after all results, in the order of the hooks, too. The tool's own output can not
// pass for either:
//
//   - anthropic (Messages API): one user message, the tool_result block first
//     and a text block for each note; then a user message for each message.
//   - openai (Chat Completions, and with it nearly everything that calls itself
//     compatible): a tool message with the notes below a visible separator; then user
//     messages. The Responses API has other items: it is not rendered.
//   - openai-structured: the tool message's content is a JSON object with the
//     output and the notes; [SystemPrompt] explains it to the model.
//   - gemini (generateContent): a functionResponse part, notes below a
//     separator; then contents of the user.
//   - grok: as openai.
//
// A loop that can ask nobody has nothing more to do than this: where the
// rendered messages answer the call, the tool must not run.
package render

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Format is the shape of an API's messages.
type Format string

// The formats.
const (
	Anthropic        Format = "anthropic"
	OpenAI           Format = "openai"
	OpenAIStructured Format = "openai-structured"
	Gemini           Format = "gemini"
	Grok             Format = "grok"
)

// Formats lists all formats.
func Formats() []Format { return []Format{Anthropic, OpenAI, OpenAIStructured, Gemini, Grok} }

// ParseFormat returns the format named s, or an error that lists the names.
func ParseFormat(s string) (Format, error) {
	names := make([]string, 0, len(Formats()))
	for _, f := range Formats() {
		if string(f) == s {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", fmt.Errorf("unknown format %q; write one of %s", s, strings.Join(names, ", "))
}

// Messages is what a loop appends to its conversation.
type Messages struct {
	// Format is the shape of Messages.
	Format Format `json:"format"`
	// Messages are to be appended in this order; never null.
	Messages []jsontext.Value `json:"messages"`
	// Answered: a call that was about to run is answered by Messages and must not
	// run: it was refused, or a hook gave its result. An ask counts as a no; a loop
	// that can ask somebody looks at the verdict first, and drops Messages after a yes.
	Answered bool `json:"answered,omitzero"`
	// AfterResult: the tool is yet to run, and Messages belong after its result.
	AfterResult bool `json:"after_result,omitzero"`
	// System belongs into the system prompt, once; empty: the format needs none.
	System string `json:"system,omitzero"`
}

// A Judged is one event and what came of it.
type Judged struct {
	Event   *schema.Event
	Verdict *schema.Verdict
}

// Render is what v says about e, as messages.
func Render(f Format, e *schema.Event, v *schema.Verdict) (Messages, error) {
	return Turn(f, []Judged{{Event: e, Verdict: v}})
}

// Turn renders the verdicts about the calls of one turn together: every API
// wants the results of calls made side by side before anything else. Of calls that are
// yet to run, Answered and AfterResult say that there are some of the kind.
func Turn(f Format, all []Judged) (Messages, error) {
	m := Messages{Format: f, Messages: []jsontext.Value{}, System: SystemPrompt(f)}
	turn := make([]said, 0, len(all))
	for _, j := range all {
		s, err := say(j.Event, j.Verdict)
		if err != nil {
			return m, err
		}
		if j.Event.HookType == schema.PreToolUse {
			m.Answered = m.Answered || s.result != nil
			m.AfterResult = m.AfterResult || s.result == nil
		}
		turn = append(turn, s)
	}
	write, ok := writers()[f]
	if !ok {
		_, err := ParseFormat(string(f))
		return m, err
	}
	written, err := write(turn)
	if err != nil {
		return m, err
	}
	for _, message := range written {
		data, err := schema.Marshal(message)
		if err != nil {
			return m, fmt.Errorf("encoding a message: %w", err)
		}
		m.Messages = append(m.Messages, data)
	}
	return m, nil
}

// Fits says why what comes of e could not be rendered, so that nobody judges it for
// nothing; nil: it can.
func Fits(f Format, e *schema.Event) error {
	r := &result{id: e.ToolUseID, tool: e.ToolName}
	switch {
	case !e.HookType.HasTool():
		return nil
	case f == Gemini:
		return r.named()
	}
	return r.identified()
}

func writers() map[Format]func([]said) ([]any, error) {
	return map[Format]func([]said) ([]any, error){
		Anthropic: anthropic, OpenAI: openAI, OpenAIStructured: openAIStructured, Gemini: gemini, Grok: openAI,
	}
}

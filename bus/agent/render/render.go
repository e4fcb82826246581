// Package render converts verdicts and conversations into the messages of model APIs. [Render]
// and [Turn] convert verdicts for a loop that keeps its conversation in an API's own form.
// [Conversation] and [Read] convert between API requests, API answers and [schema.Message], for
// a loop that does not.
//
// Hooks' texts arrive complete. Texts for the tool's result follow the result, in the order of
// the hooks. Texts for messages of their own follow all results, in the same order. A tool's
// output cannot imitate either:
//
//   - anthropic (Messages API): one user message with the tool_result block and a
//     text block for each note, then a user message for each text.
//   - openai (Chat Completions and compatible APIs, but not the Responses API): a
//     tool message with the notes below a visible separator, then user messages.
//   - openai-structured: the tool message's content is a JSON object with the
//     output and the notes. [SystemPrompt] explains it to the model.
//   - gemini (generateContent): a functionResponse part with the notes below a
//     separator, then contents of the user.
//   - grok: as openai.
//
// If [Messages].Answered is true, the messages are the call's result, and the tool must not
// run.
//
// # Concurrency
//
// The package keeps no state. Several goroutines may call its functions.
//
// # Usage
//
//	m, err := render.Render(render.Anthropic, event, verdict)
//	if err != nil {
//		return err
//	}
//	conversation = append(conversation, m.Messages...)
package render

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Format is the form of an API's messages.
type Format string

// The formats.
const (
	Anthropic        Format = "anthropic"
	OpenAI           Format = "openai"
	OpenAIStructured Format = "openai-structured"
	Gemini           Format = "gemini"
	Grok             Format = "grok"
)

// Formats returns all formats.
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
	// Format is the form of Messages.
	Format Format `json:"format"`
	// Messages lists the messages in order. It is never null.
	Messages []jsontext.Value `json:"messages"`
	// Answered means that Messages are the result of a call that was about to run, because a
	// hook refused it or gave its result. The tool must not run. An ask counts as a refusal. A
	// loop that can ask a person reads the verdict first, and drops Messages if the person
	// approves.
	Answered bool `json:"answered,omitzero"`
	// AfterResult means that the tool has yet to run, and that Messages follow its result.
	AfterResult bool `json:"after_result,omitzero"`
	// System belongs in the system prompt, once; empty: the format needs no explanation.
	System string `json:"system,omitzero"`
}

// A Judged is an event with its verdict.
type Judged struct {
	Event   *schema.Event
	Verdict *schema.Verdict
}

// Render returns the messages for the verdict v about e.
func Render(f Format, e *schema.Event, v *schema.Verdict) (Messages, error) {
	return Turn(f, []Judged{{Event: e, Verdict: v}})
}

// Turn returns the messages for the verdicts about all calls of one turn, because APIs require
// the results of concurrent calls before any other message. For calls that have yet to run,
// Answered and AfterResult report that there is at least one of the kind.
func Turn(f Format, all []Judged) (Messages, error) {
	m := Messages{Format: f, Messages: []jsontext.Value{}, System: SystemPrompt(f)}
	turn := make([]rendering, 0, len(all))
	for _, j := range all {
		s, err := renderVerdict(j.Event, j.Verdict)
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

// Fits returns why Render could not convert a verdict about e, so that a caller can find out
// before asking; nil: it can.
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

func writers() map[Format]func([]rendering) ([]any, error) {
	return map[Format]func([]rendering) ([]any, error){
		Anthropic: anthropic, OpenAI: openAI, OpenAIStructured: openAIStructured, Gemini: gemini, Grok: openAI,
	}
}

// MaxInput limits the input of [RequestOf] and [MessageOf], in bytes.
const MaxInput = 64 << 20

// RequestOf is [Conversation] of a JSON object {"messages", "tools"}. It returns JSON.
func RequestOf(f Format, conversation []byte) ([]byte, error) {
	var in struct {
		Messages []schema.Message `json:"messages"`
		Tools    []Tool           `json:"tools"`
	}
	if err := schema.Unmarshal(conversation, &in); err != nil {
		return nil, fmt.Errorf(`the conversation cannot be read: %w; write {"messages": […], "tools": […]}`, err)
	}
	r, err := Conversation(f, in.Messages, in.Tools)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(&r)
}

// MessageOf is [Read], with JSON as its result.
func MessageOf(f Format, response []byte) ([]byte, error) {
	m, err := Read(f, response)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(&m)
}

// title begins the fabric's part of a tool's output.
const title = "SYSTEM CONTEXT (not part of tool output):"

// separator returns the line around that part.
func separator() string { return strings.Repeat("═", 60) }

// separated puts the notes below a tool's output, for APIs without a place for them.
// Lines of the output that look like the frame are marked.
func separated(output string, notes []string) string {
	if len(notes) == 0 {
		return output
	}
	var b strings.Builder
	b.WriteString(marked(output, framing))
	if output != "" {
		b.WriteString("\n\n")
	}
	b.WriteString(separator() + "\n" + title + "\n")
	for i, n := range notes {
		switch {
		case !strings.Contains(n, "\n"):
			b.WriteString("- ")
		case i > 0:
			b.WriteString("\n")
		}
		b.WriteString(n + "\n")
	}
	b.WriteString(separator())
	return b.String()
}

// marked marks the lines of a text for which framing is true.
func marked(text string, framing func(line string) bool) string {
	var b strings.Builder
	for rest := text; rest != ""; {
		line, end := cutLine(rest)
		if framing(line) {
			b.WriteString("| ")
		}
		b.WriteString(line + end)
		rest = rest[len(line+end):]
	}
	return b.String()
}

// systemTitle begins a system message inside a conversation.
const systemTitle = "SYSTEM CONTEXT (from the system that runs you, not from the user):"

// framed puts a frame around a system text, for APIs that accept it only from a user.
func framed(text string) string {
	return separator() + "\n" + systemTitle + "\n" + text + "\n" + separator()
}

// unframed marks a user's text that could pass for a system text. Only the beginning of a
// line counts, because users write about system contexts.
func unframed(text string) string {
	return marked(text, func(line string) bool {
		return strings.Contains(line, "═══") || strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "system context (")
	})
}

// framing reports whether a line of a tool's output looks like the frame.
func framing(line string) bool {
	return strings.Contains(line, "═══") || strings.Contains(strings.ToLower(line), "system context")
}

// cutLine returns the first line of text and its line end, for all line ends that a model
// may recognise.
func cutLine(text string) (line, end string) {
	i := strings.IndexAny(text, "\n\r\v\f\u0085\u2028\u2029")
	if i < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return text[:i], text[i : i+size]
}

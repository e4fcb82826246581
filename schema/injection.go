package schema

// Strategy says where an injection's content goes.
type Strategy string

// The two strategies: append to the tool's result, or say as a user would.
const (
	ToolResult  Strategy = "tool_result"
	UserMessage Strategy = "user_message"
)

// Known reports whether s is one of the two strategies.
func (s Strategy) Known() bool { return s == ToolResult || s == UserMessage }

// An Injection is content for the agent to read.
type Injection struct {
	// Content is the text. Empty content is never delivered.
	Content string `json:"content"`
	// Strategy is where it goes; absent in an answer means tool_result.
	Strategy Strategy `json:"strategy,omitzero"`
	// Hook is the hook that injected it, set by the fabric.
	Hook string `json:"hook,omitzero"`
	// Source is who wrote a queued injection: human, peer, subagent, …
	Source string `json:"source,omitzero"`
	// Sequence is a queued injection's place in its queue; 0: not queued. Where
	// several were put into one text it is the last one's, and Sequences are all.
	Sequence  uint64   `json:"sequence,omitzero"`
	Sequences []uint64 `json:"sequences,omitzero"`
	// Object is where the content lies if it is too large for the verdict.
	// Clients fetch it before they hand the verdict on.
	Object *Object `json:"object,omitzero"`
}

// Length is the content's length in bytes, wherever it lies.
func (in *Injection) Length() int {
	if in.Object != nil && in.Content == "" {
		return int(in.Object.Size)
	}
	return len(in.Content)
}

// Items are the queued items that an injection holds, by their sequences; none: it
// was not queued.
func (in *Injection) Items() []uint64 {
	switch {
	case len(in.Sequences) > 0:
		return in.Sequences
	case in.Sequence > 0:
		return []uint64{in.Sequence}
	}
	return nil
}

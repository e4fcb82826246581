package schema

// Strategy is the place where an agent reads an injection.
type Strategy string

// The two strategies. ToolResult appends to the tool's result; UserMessage adds a message of
// the user.
const (
	ToolResult  Strategy = "tool_result"
	UserMessage Strategy = "user_message"
)

// Known reports whether s is one of the two strategies.
func (s Strategy) Known() bool { return s == ToolResult || s == UserMessage }

// An Injection is content for the agent to read.
type Injection struct {
	// Content is the text. The fabric never delivers empty content.
	Content string `json:"content"`
	// Strategy is the place of the text; absent in an answer: tool_result.
	Strategy Strategy `json:"strategy,omitzero"`
	// Hook is the hook that injected the text. The fabric sets it.
	Hook string `json:"hook,omitzero"`
	// Source is the author of a queued injection: human, peer, subagent, …
	Source string `json:"source,omitzero"`
	// Sequence is the place of a queued injection in the queue; 0: not queued. If one text
	// holds several items, Sequence is the last one's, and Sequences lists all.
	Sequence  uint64   `json:"sequence,omitzero"`
	Sequences []uint64 `json:"sequences,omitzero"`
	// Object locates content that is too large for the verdict. Clients fetch it before they
	// deliver the verdict.
	Object *Object `json:"object,omitzero"`
	// Folder is the author's folder as the text in Object names it. The client replaces the
	// path by the [WorkspacePath] of the folder's name; nil: no folder.
	Folder *Folder `json:"folder,omitzero"`
}

// A Folder is an agent's folder, under the agent's anonymised name.
type Folder struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Length returns the content's length in bytes, also if the content is in an object.
func (in *Injection) Length() int {
	if in.Object != nil && in.Content == "" {
		return int(in.Object.Size)
	}
	return len(in.Content)
}

// Items returns the sequences of the queued items in the injection. It returns nil if the
// injection was not queued.
func (in *Injection) Items() []uint64 {
	switch {
	case len(in.Sequences) > 0:
		return in.Sequences
	case in.Sequence > 0:
		return []uint64{in.Sequence}
	}
	return nil
}

package render

import (
	"strings"
	"unicode/utf8"
)

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

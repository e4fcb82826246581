package render

import (
	"strings"
	"unicode/utf8"
)

// title begins what the fabric adds to a tool's output.
const title = "SYSTEM CONTEXT (not part of tool output):"

// separator frames it.
func separator() string { return strings.Repeat("═", 60) }

// separated is a tool's output with the notes below it, where an API has no place of
// their own for them. No line of the output can pass for the frame.
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

// marked is text in which the lines that look like a frame are marked.
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

// systemTitle begins what the system says in the midst of a conversation.
const systemTitle = "SYSTEM CONTEXT (from the system that runs you, not from the user):"

// framed is a text of the system's, where an API takes it from a user only.
func framed(text string) string {
	return separator() + "\n" + systemTitle + "\n" + text + "\n" + separator()
}

// unframed is a user's text, no line of which can pass for the frame of the system's.
// People speak of system contexts, so that only its very beginning counts.
func unframed(text string) string {
	return marked(text, func(line string) bool {
		return strings.Contains(line, "═══") || strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "system context (")
	})
}

// framing reports whether a line of a tool's output looks like the frame.
func framing(line string) bool {
	return strings.Contains(line, "═══") || strings.Contains(strings.ToLower(line), "system context")
}

// cutLine is the first line of text, and what ends it: whatever a model may take
// for the end of a line.
func cutLine(text string) (line, end string) {
	i := strings.IndexAny(text, "\n\r\v\f\u0085\u2028\u2029")
	if i < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return text[:i], text[i : i+size]
}

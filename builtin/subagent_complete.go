package builtin

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/hookfabric/hookfabric/schema"
)

// newSubagentComplete makes the hook "subagent_complete": it delivers the results of subagents
// that ran in the background, also of those that failed or timed out. Its only option is
// at_end.
func newSubagentComplete(h schema.Hook) (any, error) {
	return newDelivery(h, sourceDelivery{source: schema.SourceSubagent, lead: "SUBAGENT RESULT", text: func(_ *schema.Receiver, run []*schema.Item) string {
		return framed(fmt.Sprintf("SUBAGENT RESULTS (%d)", len(run)), strings.Join(plainTexts(run), "\n"))
	}})
}

// subagentElement renders a result in tags. All foreign text is escaped, so that it
// cannot forge a tag.
func subagentElement(r *schema.SubagentResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<subagent_result id=%s status=%s>\n", attribute(r.ID), attribute(cmp.Or(r.Status, "unknown")))
	if r.Took > 0 {
		fmt.Fprintf(&b, "  <time>%s</time>\n", secondsOf(r.Took, 1))
	}
	if r.Workspace != "" {
		fmt.Fprintf(&b, "  <workspace>%s</workspace>\n", escaped(r.Workspace))
	}
	if r.InputTokens > 0 || r.OutputTokens > 0 {
		fmt.Fprintf(&b, "  <tokens input=\"%d\" output=\"%d\"/>\n", r.InputTokens, r.OutputTokens)
	}
	if r.Completion > 0 {
		fmt.Fprintf(&b, "  <completion>%d%%</completion>\n", r.Completion)
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "  <error>\n%s\n  </error>\n", escaped(strings.Trim(r.Error, "\n")))
	}
	if answer := strings.Trim(r.Answer, "\n"); answer != "" {
		fmt.Fprintf(&b, "  <answer>\n%s\n  </answer>\n", escaped(answer))
	} else {
		b.WriteString("  <answer/>\n")
	}
	b.WriteString("</subagent_result>")
	return b.String()
}

// escaped escapes s for the text of an element.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(visible(s))
}

// attribute escapes s for the value of an attribute, in quotes.
func attribute(s string) string {
	return `"` + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;",
		"\n", "&#10;", "\r", "&#13;", "\t", "&#9;").Replace(visible(s)) + `"`
}

// visible removes characters that are invalid in such text.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// secondsOf formats a duration in seconds, with that many decimals.
func secondsOf(d schema.Duration, decimals int) string {
	return fmt.Sprintf("%.*fs", decimals, d.Std().Seconds())
}

package builtin

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// maxResult is how many characters of a background tool's result an agent reads. It can
// get the rest from its runtime by the job's id.
const maxResult = 600

// newBackgroundToolComplete makes the hook "background_tool_complete": it delivers the results
// of tools that ran in the background. Its only option is at_end.
func newBackgroundToolComplete(h schema.Hook) (any, error) {
	return newDelivery(h, sourceDelivery{source: schema.SourceBackground, lead: "BACKGROUND TOOL RESULT", text: func(_ *schema.Receiver, run []*schema.Item) string {
		return framed(fmt.Sprintf("BACKGROUND TOOL RESULTS (%d)", len(run)), "\n"+strings.Join(plainTexts(run), "\n\n")+"\n")
	}})
}

// backgroundEntry renders one result of the list.
func backgroundEntry(r *schema.BackgroundResult) string {
	lines := []string{fmt.Sprintf("- [%s] %s (%s)", cmp.Or(oneLine(r.ID), "no id"), cmp.Or(oneLine(r.Tool), "unknown tool"), cmp.Or(oneLine(r.Status), "unknown"))}
	if r.Error != "" {
		lines = append(lines, "  Error: "+hanging(r.Error))
	}
	if r.Result != "" || r.Error == "" {
		lines = append(lines, "  Result: "+hanging(cmp.Or(r.Result, "none")))
	}
	return strings.Join(lines, "\n")
}

// hanging cuts a text and indents all its lines but the first, which follows a word.
func hanging(text string) string {
	return strings.TrimLeft(indented(cut(strings.TrimSpace(text), maxResult), "    "), " ")
}

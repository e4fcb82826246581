package builtin

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// maxResult is how many characters of a background tool's result an agent reads. It can
// get the rest from its runtime by the job's id.
const maxResult = 600

// backgroundToolComplete is the hook "background_tool_complete": it delivers the results
// of tools that ran in the background. Its only option is at_end.
type backgroundToolComplete struct{ endOptions }

func newBackgroundToolComplete(h schema.Hook) (any, error) {
	o, err := ending(h)
	return backgroundToolComplete{o}, err
}

// Choose takes all results of background tools.
func (d backgroundToolComplete) Choose(r *schema.Receiver, _ *schema.Peers, due []*schema.Item) []*schema.Item {
	if d.waits(r) {
		return nil
	}
	return chosen(due, from(schema.SourceBackground))
}

// Render lists the results of each run of items.
func (d backgroundToolComplete) Render(r *schema.Receiver, items []*schema.Item) schema.Handout {
	return d.ends(r, rendered(items, func(*schema.Item) string { return "BACKGROUND TOOL RESULT" }, func(run []*schema.Item) string {
		var results []string
		for _, it := range run {
			results = append(results, plain(it))
		}
		return framed(fmt.Sprintf("BACKGROUND TOOL RESULTS (%d)", len(run)), "\n"+strings.Join(results, "\n\n")+"\n")
	}))
}

// backgroundEntry renders one result of the list.
func backgroundEntry(r *schema.BackgroundResult) string {
	lines := []string{fmt.Sprintf("- [%s] %s (%s)", orElse(oneLine(r.ID), "no id"), orElse(oneLine(r.Tool), "unknown tool"), orElse(oneLine(r.Status), "unknown"))}
	if r.Error != "" {
		lines = append(lines, "  Error: "+hanging(r.Error))
	}
	if r.Result != "" || r.Error == "" {
		lines = append(lines, "  Result: "+hanging(orElse(r.Result, "none")))
	}
	return strings.Join(lines, "\n")
}

// hanging cuts a text and indents all its lines but the first, which follows a word.
func hanging(text string) string {
	return strings.TrimLeft(indented(cut(strings.TrimSpace(text), maxResult), "    "), " ")
}

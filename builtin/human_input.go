package builtin

import (
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// humanLabel stands before every message of a person.
const humanLabel = "[Human Input]:"

// humanInput is the hook "human_input": what a person says to a busy agent. It
// has no options.
type humanInput struct{}

func newHumanInput(h schema.Hook) (any, error) {
	_, err := options[struct{}](h)
	return humanInput{}, err
}

// Choose takes all that people said.
func (humanInput) Choose(_ *schema.Receiver, _ *schema.Peers, due []*schema.Item) []*schema.Item {
	return chosen(due, from(schema.SourceHuman))
}

// Render is one block per run of messages, each under its label.
func (humanInput) Render(_ *schema.Receiver, items []*schema.Item) schema.Handout {
	return handed(items, func(*schema.Item) string { return humanLabel }, func(run []*schema.Item) string {
		var lines []string
		for _, it := range run {
			lines = append(lines, humanLabel+" "+plain(it))
		}
		return strings.Join(lines, "\n")
	})
}

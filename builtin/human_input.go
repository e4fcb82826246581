package builtin

import (
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// humanLabel precedes every message of a person.
const humanLabel = "[Human Input]:"

// humanInput is the hook "human_input": it delivers messages of people to a busy agent.
// Its only option is at_end.
type humanInput struct{ endOptions }

func newHumanInput(h schema.Hook) (any, error) {
	o, err := ending(h)
	return humanInput{o}, err
}

// Choose takes all messages of people.
func (d humanInput) Choose(r *schema.Receiver, _ *schema.Peers, due []*schema.Item) []*schema.Item {
	if d.waits(r) {
		return nil
	}
	return chosen(due, from(schema.SourceHuman))
}

// Render makes one block per run of messages, each message under its label.
func (d humanInput) Render(r *schema.Receiver, items []*schema.Item) schema.Handout {
	return d.ends(r, rendered(items, func(*schema.Item) string { return humanLabel }, func(run []*schema.Item) string {
		var lines []string
		for _, it := range run {
			lines = append(lines, humanLabel+" "+plain(it))
		}
		return strings.Join(lines, "\n")
	}))
}

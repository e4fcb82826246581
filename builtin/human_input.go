package builtin

import (
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// humanLabel precedes every message of a person.
const humanLabel = "[Human Input]:"

// newHumanInput makes the hook "human_input": it delivers messages of people to a busy agent,
// each under its label. Its only option is at_end.
func newHumanInput(h schema.Hook) (any, error) {
	return newDelivery(h, sourceDelivery{source: schema.SourceHuman, lead: humanLabel, text: func(_ *schema.Receiver, run []*schema.Item) string {
		return humanLabel + " " + strings.Join(plainTexts(run), "\n"+humanLabel+" ")
	}})
}

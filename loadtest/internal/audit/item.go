package audit

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/hookfabric/hookfabric/schema"
)

// ops is a source of the load test; the others are the fabric's.
const ops = "ops"

// Sources returns the sources of each producer, for each agent.
func Sources() []string { return []string{schema.SourceHuman, schema.SourceBackground, ops} }

// request returns a producer's request for the item, which is always the same.
func (i Item) request() schema.InjectRequest {
	r := schema.InjectRequest{Source: i.Source, Producer: i.Producer, Number: i.Number}
	text := fmt.Sprintf("item=%s/%s/%s/%d; is for you to read.", i.Agent, i.Source, i.Producer, i.Number)
	if i.Number%2 == 0 {
		r.Strategy = schema.UserMessage
	}
	if i.Source == schema.SourceBackground {
		r.Background = &schema.BackgroundResult{ID: fmt.Sprintf("job-%d", i.Number), Tool: "build", Status: "completed", Result: text}
		return r
	}
	r.Content = text
	return r
}

// A finder finds the items in a text.
type finder struct{ like *regexp.Regexp }

func newFinder() finder {
	return finder{like: regexp.MustCompile(`item=([\w-]+)/([\w-]+)/([\w-]+)/([0-9]+);`)}
}

// items returns the items in the injections' texts, in their order.
func (f finder) items(injections []schema.Injection) []Item {
	var all []Item
	for _, in := range injections {
		for _, m := range f.like.FindAllStringSubmatch(in.Content, -1) {
			n, err := strconv.ParseUint(m[4], 10, 64)
			if err != nil {
				continue // no item has this number: the audit reports the item as lost
			}
			all = append(all, Item{Agent: m[1], Source: m[2], Producer: m[3], Number: n})
		}
	}
	return all
}

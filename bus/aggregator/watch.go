package aggregator

import (
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// aside counts results that are not in a verdict: those of hooks that ran at the same time as the
// one that ended the chain.
func (a *Aggregator) aside(req *dispatch.Request, _ *schema.Hook, part schema.Verdict) {
	for i := range part.ExecutedHooks {
		a.report.Metrics.Executed(&part.ExecutedHooks[i])
	}
	a.report.Feed.Aside(&req.Routing, &part)
}

// late counts an answer that came after its call was given up.
func (a *Aggregator) late(b *schema.Batch) {
	act := a.config.active.Load()
	if act == nil || act.Config.Version != b.Version {
		return
	}
	for _, i := range b.Hooks {
		a.report.Metrics.Late(act.Config.Hooks[i].Name)
	}
}

package main

// ofHooks selects the series of the chosen hooks.
const ofHooks = `{hook=~"$hook"}`

func hooks() dashboard {
	return dashboard{
		name: "hooks", title: "Hooks", about: "Outcomes, run times and failures of hooks, and the changes that shadow hooks would make.",
		variables: []variable{{"hook", "Hook", "hookfabric_hook_outcomes_total"}},
		rows:      []row{hookOutcomes(), hookFailures(), hookPools(), hookShadows()},
	}
}

// hookOutcomes shows how often hooks run and how they end.
func hookOutcomes() row {
	return row{"Hooks", []panel{
		{title: "Runs", about: "Runs of each hook per second.", unit: perSecond,
			queries: one(rate("hookfabric_hook_outcomes_total"+`{hook=~"$hook",outcome!="late"}`, "hook"), "{{hook}}")},
		{title: "Outcomes", about: "ok means that the hook answered. All other outcomes follow the hook's failure policy. A late outcome was counted as deadline before.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_hook_outcomes_total"+ofHooks, "outcome"), "{{outcome}}")},
		{title: "99th percentile", about: "99 % of the runs take at most this long. A hook near its timeout will soon fail.", unit: seconds,
			queries: one(`hookfabric:hook_seconds:p99_rate5m{hook=~"$hook"}`, "{{hook}}")},
	}}
}

// hookFailures shows failures by their effect.
func hookFailures() row {
	return row{"Failures", []panel{
		{title: "Fails open", about: "Failures that counted as no opinion.", unit: perSecond,
			queries: one(rate("hookfabric_fail_open_total"+ofHooks, "hook, cause"), "{{hook}}: {{cause}}")},
		{title: "Fails closed", about: "Failures that denied the call.", unit: perSecond,
			queries: one(rate("hookfabric_fail_closed_total"+ofHooks, "hook, cause"), "{{hook}}: {{cause}}")},
		{title: "Failed conditions", about: "Conditions that failed to evaluate and counted as true.", unit: perSecond,
			queries: one(rate("hookfabric_condition_errors_total"+ofHooks, "hook"), "{{hook}}")},
	}}
}

// hookPools shows whether pools keep up.
func hookPools() row {
	return row{"Pools", []panel{
		{title: "Batches that waited", about: "Share of batches that waited longer than half a second for a free worker of their pool.", unit: share,
			queries: one("hookfabric:batches_waited:ratio_rate5m", "{{pool}}")},
		{title: "Hooks per batch", about: "Average number of hooks in one request to a worker.", unit: number,
			queries: one(rate("hookfabric_batch_hooks_sum", "pool")+" / "+rate("hookfabric_batch_hooks_count", "pool"), "{{pool}}")},
		{title: "Reruns", about: "Hooks that ran again because their worker was lost.", unit: perSecond,
			queries: one(rate("hookfabric_reruns_total", "pool"), "{{pool}}")},
	}}
}

// hookShadows shows what shadow hooks would change.
func hookShadows() row {
	return row{"Shadow hooks", []panel{
		{title: "Decision, and decision with the shadow hook", about: "Calls by their decision and by the decision that the shadow hook would have made.", unit: perSecond,
			queries: one(rate("hookfabric_shadow_total"+ofHooks, "hook, decided, would"), "{{hook}}: {{decided}} → {{would}}")},
		{title: "Would rewrite", about: "Calls that a shadow hook would have rewritten.", unit: perSecond,
			queries: one(rate("hookfabric_shadow_rewrites_total"+ofHooks, "hook"), "{{hook}}")},
		{title: "Not run", about: "Shadow hooks that did not run because too many were under way, or because their pool was half full.", unit: perSecond,
			queries: one(rate("hookfabric_shadow_dropped_total", ""), "not run")},
	}}
}

package main

// ofHooks are the lines of hooks that are chosen.
const ofHooks = `{hook=~"$hook"}`

func hooks() dashboard {
	return dashboard{
		name: "hooks", title: "Hooks", about: "What hooks say, how long they take, how they fail, and what shadow hooks would change.",
		variables: []variable{{"hook", "Hook", "hookfabric_hook_outcomes_total"}},
		rows:      []row{hookOutcomes(), hookFailures(), hookPools(), hookShadows()},
	}
}

// hookOutcomes is what comes of asking.
func hookOutcomes() row {
	return row{"Hooks", []panel{
		{title: "Asked", about: "How often each hook is asked in a second.", unit: perSecond,
			queries: one(rate("hookfabric_hook_outcomes_total"+`{hook=~"$hook",outcome!="late"}`, "hook"), "{{hook}}")},
		{title: "What came of it", about: "ok carries an opinion; the others follow the hook's failure policy. late was counted as a deadline before.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_hook_outcomes_total"+ofHooks, "outcome"), "{{outcome}}")},
		{title: "99th percentile", about: "One answer in a hundred takes longer. A hook that comes near its timeout fails soon.", unit: seconds,
			queries: one(`hookfabric:hook_seconds:p99_rate5m{hook=~"$hook"}`, "{{hook}}")},
	}}
}

// hookFailures is what comes of failing.
func hookFailures() row {
	return row{"Failures", []panel{
		{title: "Fails open", about: "Failures that were taken as no opinion.", unit: perSecond,
			queries: one(rate("hookfabric_fail_open_total"+ofHooks, "hook, cause"), "{{hook}}: {{cause}}")},
		{title: "Fails closed", about: "Failures that refused the call.", unit: perSecond,
			queries: one(rate("hookfabric_fail_closed_total"+ofHooks, "hook, cause"), "{{hook}}: {{cause}}")},
		{title: "Conditions", about: "Conditions that could not be evaluated and counted as true.", unit: perSecond,
			queries: one(rate("hookfabric_condition_errors_total"+ofHooks, "hook"), "{{hook}}")},
	}}
}

// hookPools is how pools keep up.
func hookPools() row {
	return row{"Pools", []panel{
		{title: "Waited", about: "The share of batches that waited for longer than half a second until a worker of their pool had room.", unit: share,
			queries: one("hookfabric:batches_waited:ratio_rate5m", "{{pool}}")},
		{title: "Hooks per batch", about: "How many hooks travel in one request, on average.", unit: number,
			queries: one(rate("hookfabric_batch_hooks_sum", "pool")+" / "+rate("hookfabric_batch_hooks_count", "pool"), "{{pool}}")},
		{title: "Ran again", about: "Hooks that ran again because their worker was lost.", unit: perSecond,
			queries: one(rate("hookfabric_reruns_total", "pool"), "{{pool}}")},
	}}
}

// hookShadows is what would change.
func hookShadows() row {
	return row{"Shadow hooks", []panel{
		{title: "What was decided, and what would have been", about: "Calls by the decision and the one that would have been if the shadow hook had counted.", unit: perSecond,
			queries: one(rate("hookfabric_shadow_total"+ofHooks, "hook, decided, would"), "{{hook}}: {{decided}} → {{would}}")},
		{title: "Would rewrite", about: "Calls that a shadow hook would have rewritten.", unit: perSecond,
			queries: one(rate("hookfabric_shadow_rewrites_total"+ofHooks, "hook"), "{{hook}}")},
		{title: "Left out", about: "Shadow hooks that did not run because too many were under way, or their pool was half full.", unit: perSecond,
			queries: one(rate("hookfabric_shadow_dropped_total", ""), "left out")},
	}}
}

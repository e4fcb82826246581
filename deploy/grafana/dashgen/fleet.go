package main

func fleet() dashboard {
	return dashboard{
		name: "fleet", title: "Fleet", about: "Whether agents are judged, how fast, and what passes unjudged.",
		rows: []row{fleetNow(), fleetVerdicts(), fleetLatency(), fleetFailures(), fleetOverload(), fleetFrozen()},
	}
}

// fleetNow is the first glance.
func fleetNow() row {
	return row{"Now", []panel{
		{title: "Verdicts", about: "All verdicts given in a second.", unit: perSecond, stat: true,
			queries: one("sum(hookfabric:requests:rate5m)", "")},
		{title: "Refused", about: "The share of verdicts that deny or fail.", unit: share, stat: true,
			queries: one(`sum(hookfabric:requests:rate5m{decision=~"deny|fail"}) / sum(hookfabric:requests:rate5m)`, "")},
		{title: "Fails open", about: "The share of what hooks are asked that passes because they fail. At most 0.1 % is the objective.", unit: share, stat: true, red: 0.001,
			queries: one("hookfabric:fail_open:ratio_rate5m", "")},
		{title: "Allowance left, 30 days", about: "What is left of the 0.1 % that may pass because hooks fail; below 0 the objective is missed.", unit: share, stat: true, red: 0.1, low: true,
			queries: one(`1 - sum(increase(hookfabric_fail_open_total[30d])) / sum(increase(hookfabric_hook_outcomes_total{outcome!="late"}[30d])) / 0.001`, "")},
		{title: "Brokers ready", about: "How many brokers say on /readyz that they are ready.", unit: number, stat: true, red: 1, low: true,
			queries: one(`count(hookfabric_ready{job="hookfabric-broker"} == 1)`, "")},
		{title: "Workers ready", about: "How many hookworkers say on /readyz that they are ready. A broker's own worker is not counted.", unit: number, stat: true,
			queries: one(`count(hookfabric_ready{job="hookfabric-worker"} == 1)`, "")},
	}}
}

// fleetVerdicts is what is decided.
func fleetVerdicts() row {
	return row{"Verdicts", []panel{
		{title: "Verdicts by event", about: "How many verdicts are given in a second, by the event that they are about.", unit: perSecond, stack: true,
			queries: one("sum by (event) (hookfabric:requests:rate5m)", "{{event}}")},
		{title: "Verdicts by decision", about: "The same by what was decided.", unit: perSecond, stack: true,
			queries: one("sum by (decision) (hookfabric:requests:rate5m)", "{{decision}}")},
		{title: "Under way", about: "Events that brokers have and have not answered yet.", unit: number, stack: true,
			queries: one("sum by (instance) (hookfabric_in_flight)", "{{instance}}")},
	}}
}

// fleetLatency is how long that takes.
func fleetLatency() row {
	return row{"How long an answer takes, as the broker sees it", []panel{
		{title: "Median by event", about: "Half of the verdicts take no longer from an event's arrival. Way to the agent and back not included.", unit: seconds,
			queries: one("hookfabric:request_seconds:p50_rate5m", "{{event}}")},
		{title: "99th percentile by event", about: "One verdict in a hundred takes longer.", unit: seconds,
			queries: one("hookfabric:request_seconds:p99_rate5m", "{{event}}")},
	}}
}

// fleetFailures is what hooks left open.
func fleetFailures() row {
	return row{"What passes unjudged, and what is refused for want of an answer", []panel{
		{title: "Fails open by cause", about: "Failures of hooks that were taken as no opinion.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_fail_open_total", "cause"), "{{cause}}")},
		{title: "Fails closed by cause", about: "Failures of fail-closed hooks, whose calls were refused.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_fail_closed_total", "cause"), "{{cause}}")},
		{title: "Nobody judged", about: "Calls about which shims decided by themselves because no broker answered; continue is those that passed.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_unjudged_calls_total", "decision"), "{{decision}}")},
	}}
}

// fleetOverload is what was not judged as it should be.
func fleetOverload() row {
	return row{"Too much, and nonsense", []panel{
		{title: "Waiting", about: "Events that wait because more came than can be judged at once.", unit: number, stack: true,
			queries: one("sum by (instance) (hookfabric_waiting)", "{{instance}}")},
		{title: "Waited too long", about: "Events that were not given to their hooks any more: busy were answered by failure policies, stale by nobody.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_shed_total", "cause"), "{{cause}}")},
		{title: "One agent too many", about: "What was not judged, or not served, because one agent asked for more than one may take: broker status and the feed say who.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_limited_total", "limit"), "{{limit}}")},
		{title: "Malformed", about: "Events that could not be judged as they were.", unit: perSecond,
			queries: one(rate("hookfabric_malformed_total", ""), "malformed")},
	}}
}

// fleetFrozen is what operators have stopped.
func fleetFrozen() row {
	return row{"Frozen", []panel{
		{title: "Freezes that stand", about: "Of all agents (1 or 0), and of some (how many). Every broker knows all of them.", unit: number,
			queries: one("max by (scope) (hookfabric_frozen)", "{{scope}}")},
		{title: "Versions of what is frozen", about: "Which one each broker goes by. Lines that stay apart mean that one has not heard of the last.", unit: number,
			queries: one("hookfabric_freeze_version", "{{instance}}")},
		{title: "Freezes that can not be read", about: "1: the broker goes by what it knew before.", unit: number,
			queries: one("hookfabric_freezes_unreadable", "{{instance}}")},
		{title: "Refused by a freeze", about: "Tool calls that a freeze refused: when they were asked, or while their hooks were being asked.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_freeze_refusals_total", "when"), "{{when}}")},
	}}
}

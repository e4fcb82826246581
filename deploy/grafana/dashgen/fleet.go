package main

func fleet() dashboard {
	return dashboard{
		name: "fleet", title: "Fleet", about: "Verdicts: how many, how fast, and how many calls pass unjudged.",
		rows: []row{fleetNow(), fleetVerdicts(), fleetLatency(), fleetFailures(), fleetOverload(), fleetFrozen()},
	}
}

// fleetNow shows the most important figures.
func fleetNow() row {
	return row{"Now", []panel{
		{title: "Verdicts", about: "Verdicts per second.", unit: perSecond, stat: true,
			queries: one("sum(hookfabric:requests:rate5m)", "")},
		{title: "Denied", about: "Share of verdicts that are deny or fail.", unit: share, stat: true,
			queries: one(`sum(hookfabric:requests:rate5m{decision=~"deny|fail"}) / sum(hookfabric:requests:rate5m)`, "")},
		{title: "Fails open", about: "Share of hook runs that fail open. The objective is at most 0.1 %.", unit: share, stat: true, red: 0.001,
			queries: one("hookfabric:fail_open:ratio_rate5m", "")},
		{title: "Error budget left, 30 days", about: "Unused part of the 0.1 % of hook runs that may fail open. Below 0, the objective is missed.", unit: share, stat: true, red: 0.1, low: true,
			queries: one(`1 - sum(increase(hookfabric_fail_open_total[30d])) / sum(increase(hookfabric_hook_outcomes_total{outcome!="late"}[30d])) / 0.001`, "")},
		{title: "Brokers ready", about: "Brokers whose /readyz says ready.", unit: number, stat: true, red: 1, low: true,
			queries: one(`count(hookfabric_ready{job="hookfabric-broker"} == 1)`, "")},
		{title: "Workers ready", about: "Processes of hookworker whose /readyz says ready. Workers inside brokers are not counted.", unit: number, stat: true,
			queries: one(`count(hookfabric_ready{job="hookfabric-worker"} == 1)`, "")},
	}}
}

// fleetVerdicts shows the verdicts.
func fleetVerdicts() row {
	return row{"Verdicts", []panel{
		{title: "Verdicts by event", about: "Verdicts per second, by event.", unit: perSecond, stack: true,
			queries: one("sum by (event) (hookfabric:requests:rate5m)", "{{event}}")},
		{title: "Verdicts by decision", about: "Verdicts per second, by decision.", unit: perSecond, stack: true,
			queries: one("sum by (decision) (hookfabric:requests:rate5m)", "{{decision}}")},
		{title: "Under way", about: "Events that brokers have received and not answered yet.", unit: number, stack: true,
			queries: one("sum by (instance) (hookfabric_in_flight)", "{{instance}}")},
	}}
}

// fleetLatency shows the latency of verdicts.
func fleetLatency() row {
	return row{"Latency at the broker", []panel{
		{title: "Median by event", about: "Half of the verdicts take at most this long. The time starts when the event arrives at the broker, and excludes the network to the agent.", unit: seconds,
			queries: one("hookfabric:request_seconds:p50_rate5m", "{{event}}")},
		{title: "99th percentile by event", about: "99 % of the verdicts take at most this long.", unit: seconds,
			queries: one("hookfabric:request_seconds:p99_rate5m", "{{event}}")},
	}}
}

// fleetFailures shows calls that hooks did not judge.
func fleetFailures() row {
	return row{"Failed hooks and unjudged calls", []panel{
		{title: "Fails open by cause", about: "Failures of hooks that counted as no opinion.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_fail_open_total", "cause"), "{{cause}}")},
		{title: "Fails closed by cause", about: "Failures of fail-closed hooks. Their calls were denied.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_fail_closed_total", "cause"), "{{cause}}")},
		{title: "Unjudged calls", about: "Calls that shims decided themselves because no broker answered. Calls with continue passed.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_unjudged_calls_total", "decision"), "{{decision}}")},
	}}
}

// fleetOverload shows overload and invalid events.
func fleetOverload() row {
	return row{"Overload and invalid events", []panel{
		{title: "Waiting", about: "Events that wait because more arrive than the broker can judge at once.", unit: number, stack: true,
			queries: one("sum by (instance) (hookfabric_waiting)", "{{instance}}")},
		{title: "Shed", about: "Events that waited too long to run their hooks: for busy, failure policies decided; for stale, the client had given up.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_shed_total", "cause"), "{{cause}}")},
		{title: "Over the limit of one agent", about: "Events and requests above a limit for one agent. broker status and the feed name the agent.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_limited_total", "limit"), "{{limit}}")},
		{title: "Malformed", about: "Events that the broker could not read.", unit: perSecond,
			queries: one(rate("hookfabric_malformed_total", ""), "malformed")},
	}}
}

// fleetFrozen shows freezes.
func fleetFrozen() row {
	return row{"Frozen", []panel{
		{title: "Active freezes", about: "Freezes of all agents (1 or 0), and of some (their number). Every broker reports all freezes.", unit: number,
			queries: one("max by (scope) (hookfabric_frozen)", "{{scope}}")},
		{title: "Freeze version", about: "The version of the freezes that each broker applies. If the lines stay apart, a broker missed the last change.", unit: number,
			queries: one("hookfabric_freeze_version", "{{instance}}")},
		{title: "Freezes unreadable", about: "1 while the broker cannot read the stored freezes. It then applies the last ones it read.", unit: number,
			queries: one("hookfabric_freezes_unreadable", "{{instance}}")},
		{title: "Denied by a freeze", about: "Tool calls that a freeze denied: asked is before their hooks ran, under_way is while they ran.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_freeze_refusals_total", "when"), "{{when}}")},
	}}
}

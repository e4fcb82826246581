package main

func injections() dashboard {
	return dashboard{
		name: "injections", title: "Injections", about: "What waits for agents, what they read, and what they never did.",
		rows: []row{itemsWaiting(), itemsEnded(), itemsInTrouble(), conversations()},
	}
}

// itemsWaiting is the queue.
func itemsWaiting() row {
	return row{"What waits", []panel{
		{title: "Waiting by source", about: "Items that wait for agents, or are for several and have not expired. Every broker knows all of them.", unit: number, stack: true,
			queries: one("max by (source) (hookfabric_injections_pending)", "{{source}}")},
		{title: "The oldest", about: "How long the oldest item has waited that is for one agent.", unit: seconds,
			queries: one("max(hookfabric_injections_oldest_pending_seconds)", "oldest")},
		{title: "Brokers behind", about: "How long each broker's copy of the queue has been behind.", unit: seconds,
			queries: one("hookfabric_mirror_lag_seconds", "{{instance}}")},
	}}
}

// itemsEnded is what left it.
func itemsEnded() row {
	return row{"What became of it", []panel{
		{title: "Delivered by source", about: "Items whose agents' sides said that they handed them over.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_injections_delivered_total", "source"), "{{source}}")},
		{title: "Expired by source", about: "Items for one agent that waited for too long and are gone.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_injections_expired_total", "source"), "{{source}}")},
		{title: "Twice", about: "Repeats of items that were accepted before, and items that went out again because nobody acknowledged them.", unit: perSecond,
			queries: []query{{rate("hookfabric_injections_duplicates_total", ""), "said twice"}, {rate("hookfabric_injections_redelivered_total", ""), "went out again"}}},
		{title: "Repeats are recognised for", about: "24 hours; less where very many items end. A repeat that comes later is refused as too old: it is never accepted twice.", unit: seconds,
			queries: one("min(hookfabric_injections_remembered_seconds)", "numbered items")},
	}}
}

// itemsInTrouble is what kept agents from reading.
func itemsInTrouble() row {
	return row{"Trouble", []panel{
		{title: "Leases that ended", about: "Shims took items along and did not say in time that they handed them over.", unit: perSecond,
			queries: one(rate("hookfabric_lease_expirations_total", ""), "leases")},
		{title: "Deliveries cut", about: "Calls that went on without injections because the queue did not answer in time.", unit: perSecond,
			queries: one(rate("hookfabric_deliveries_cut_total", ""), "cut")},
		{title: "Lost races", about: "Writes that others had been faster with, and that were made again.", unit: perSecond,
			queries: one(rate("hookfabric_state_conflicts_total", "instance"), "{{instance}}")},
	}}
}

// conversations is the store of conversations.
func conversations() row {
	return row{"Conversations", []panel{
		{title: "Parts of conversations", about: "What agents' sides put into the store or asked for; refused means that hooks with needs: [history] go without.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_history_parts_total", "outcome"), "{{outcome}}")},
	}}
}

func rounds() dashboard {
	return dashboard{
		name: "rounds", title: "Rounds", about: "How agents' rounds and turns end.",
		rows: []row{roundLimits(), roundTurns(), roundReminders()},
	}
}

// roundLimits is how rounds end.
func roundLimits() row {
	return row{"Time limits", []panel{
		{title: "Warnings", about: "Rounds whose agents were sent the warning that their time is over.", unit: perSecond,
			queries: one(rate("hookfabric_soft_timeouts_total", ""), "warned")},
		{title: "Refused after the grace", about: "Calls refused because the grace of a round was over. Many for few warnings: agents that do not come to an end.", unit: perSecond,
			queries: one(rate("hookfabric_hard_timeouts_total", ""), "refused")},
	}}
}

// roundTurns is how turns, queries and sessions go.
func roundTurns() row {
	return row{"Turns", []panel{
		{title: "Ends of turns", about: "What is decided when an agent would end its turn; retry sends it on, with what waits for it or because a hook wants more.", unit: perSecond, stack: true,
			queries: one(`sum by (decision) (hookfabric:requests:rate5m{event="BeforeFinalResponse"})`, "{{decision}}")},
		{title: "Queries", about: "Prompts that came in, and queries that came to their end.", unit: perSecond,
			queries: one(`sum by (event) (hookfabric:requests:rate5m{event=~"UserPromptSubmit|QueryEnd"})`, "{{event}}")},
		{title: "Sessions", about: "Sessions that began and ended.", unit: perSecond,
			queries: one(`sum by (event) (hookfabric:requests:rate5m{event=~"SessionStart|SessionEnd"})`, "{{event}}")},
	}}
}

// roundReminders is what agents are told of it.
func roundReminders() row {
	return row{"Reminders and warnings on their way", []panel{
		{title: "Waiting", about: "Reminders and warnings that agents have not read yet.", unit: number,
			queries: one(`max by (source) (hookfabric_injections_pending{source=~"reminder|timeout"})`, "{{source}}")},
		{title: "Read", about: "Reminders and warnings that agents' sides handed over.", unit: perSecond,
			queries: one(rate(`hookfabric_injections_delivered_total{source=~"reminder|timeout"}`, "source"), "{{source}}")},
	}}
}

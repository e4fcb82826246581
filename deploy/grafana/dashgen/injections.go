package main

func injections() dashboard {
	return dashboard{
		name: "injections", title: "Injections", about: "Messages for agents: waiting, delivered, expired.",
		rows: []row{waitingMessages(), finishedMessages(), messageProblems(), conversations()},
	}
}

// waitingMessages shows the queue.
func waitingMessages() row {
	return row{"Waiting messages", []panel{
		{title: "Waiting by source", about: "Messages that wait for agents. Messages for several agents count until they expire. Every broker reports all messages.", unit: number, stack: true,
			queries: one("max by (source) (hookfabric_injections_pending)", "{{source}}")},
		{title: "Oldest message", about: "Age of the oldest message for one agent.", unit: seconds,
			queries: one("max(hookfabric_injections_oldest_pending_seconds)", "oldest")},
		{title: "Queue lag", about: "How long each broker's copy of the queue has been behind JetStream.", unit: seconds,
			queries: one("hookfabric_mirror_lag_seconds", "{{instance}}")},
	}}
}

// finishedMessages shows messages that left the queue.
func finishedMessages() row {
	return row{"Finished messages", []panel{
		{title: "Delivered by source", about: "Messages that shims or clients delivered and acknowledged.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_injections_delivered_total", "source"), "{{source}}")},
		{title: "Expired by source", about: "Messages for one agent that were removed after their TTL.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_injections_expired_total", "source"), "{{source}}")},
		{title: "Repeats", about: "Repeats of messages that the broker had already accepted, and messages delivered again without an acknowledgement.", unit: perSecond,
			queries: []query{{rate("hookfabric_injections_duplicates_total", ""), "sent again"}, {rate("hookfabric_injections_redelivered_total", ""), "delivered again"}}},
		{title: "Repeats are recognised for", about: "How long the broker recognises a repeat of a numbered message: 24 h, or less when very many messages end. It refuses later repeats as too old.", unit: seconds,
			queries: one("min(hookfabric_injections_remembered_seconds)", "numbered messages")},
	}}
}

// messageProblems shows why agents do not read messages.
func messageProblems() row {
	return row{"Problems", []panel{
		{title: "Expired leases", about: "Shims received messages and did not acknowledge them within 30 s.", unit: perSecond,
			queries: one(rate("hookfabric_lease_expirations_total", ""), "leases")},
		{title: "Deliveries cut", about: "Calls that continued without messages because the queue did not answer in time.", unit: perSecond,
			queries: one(rate("hookfabric_deliveries_cut_total", ""), "cut")},
		{title: "Write conflicts", about: "Writes that lost a compare-and-set and were repeated.", unit: perSecond,
			queries: one(rate("hookfabric_state_conflicts_total", "instance"), "{{instance}}")},
	}}
}

// conversations shows the store of conversations.
func conversations() row {
	return row{"Conversations", []panel{
		{title: "Parts of conversations", about: "Parts of conversations that agents stored or requested. refused means that hooks with needs: [history] fail.", unit: perSecond, stack: true,
			queries: one(rate("hookfabric_history_parts_total", "outcome"), "{{outcome}}")},
	}}
}

func rounds() dashboard {
	return dashboard{
		name: "rounds", title: "Rounds", about: "Ends of rounds, turns and sessions.",
		rows: []row{roundLimits(), roundTurns(), roundReminders()},
	}
}

// roundLimits shows how rounds end.
func roundLimits() row {
	return row{"Time limits", []panel{
		{title: "Warnings", about: "Rounds whose agents received the warning that their time is over.", unit: perSecond,
			queries: one(rate("hookfabric_soft_timeouts_total", ""), "warned")},
		{title: "Denied after the grace period", about: "Calls denied because the grace period of a round was over. Many denials and few warnings mean that agents ignore the warning.", unit: perSecond,
			queries: one(rate("hookfabric_hard_timeouts_total", ""), "denied")},
	}}
}

// roundTurns shows turns, queries and sessions.
func roundTurns() row {
	return row{"Turns", []panel{
		{title: "Ends of turns", about: "Decisions when an agent wants to end its turn. retry continues the turn, because messages wait or a hook requires it.", unit: perSecond, stack: true,
			queries: one(`sum by (decision) (hookfabric:requests:rate5m{event="BeforeFinalResponse"})`, "{{decision}}")},
		{title: "Queries", about: "Prompts received, and queries ended.", unit: perSecond,
			queries: one(`sum by (event) (hookfabric:requests:rate5m{event=~"UserPromptSubmit|QueryEnd"})`, "{{event}}")},
		{title: "Sessions", about: "Sessions started and ended.", unit: perSecond,
			queries: one(`sum by (event) (hookfabric:requests:rate5m{event=~"SessionStart|SessionEnd"})`, "{{event}}")},
	}}
}

// roundReminders shows reminders and warnings.
func roundReminders() row {
	return row{"Reminders and warnings", []panel{
		{title: "Waiting", about: "Reminders and warnings that agents have not read yet.", unit: number,
			queries: one(`max by (source) (hookfabric_injections_pending{source=~"reminder|timeout"})`, "{{source}}")},
		{title: "Read", about: "Reminders and warnings that shims or clients delivered and acknowledged.", unit: perSecond,
			queries: one(rate(`hookfabric_injections_delivered_total{source=~"reminder|timeout"}`, "source"), "{{source}}")},
	}}
}

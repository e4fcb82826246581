package main

func brokers() dashboard {
	return dashboard{
		name: "brokers", title: "Brokers and workers", about: "The processes: whether they are ready, what they are configured with, and what they need.",
		variables: instances(),
		rows:      []row{processState(), processWork(), processConfiguration(), processNeeds(), processSays()},
	}
}

// processState is whether processes can do their work.
func processState() row {
	return row{"State", []panel{
		{title: "Ready", about: "1 while /readyz says ready.", unit: number, most: 1,
			queries: one("hookfabric_ready"+chosen, "{{job}} {{instance}}")},
		{title: "Connected", about: "1 while the connection to NATS stands. A broker has one for events and one for workers and state.", unit: number, most: 1,
			queries: one("hookfabric_connected"+chosen, "{{instance}} {{connection}}")},
		{title: "Credentials", about: "For how long those of --creds are good; and for how long they were when they were made; nothing is drawn where that is for ever.", unit: seconds,
			queries: []query{{"hookfabric_credentials_left_seconds" + chosen, "{{job}} {{instance}}"}, {"hookfabric_credentials_lifetime_seconds" + chosen, "{{job}} {{instance}}, at first"}}},
		{title: "Who may use the fabric can not be read", about: "1: the broker goes by what it knew before, and who is revoked stays in.", unit: number, most: 1,
			queries: one("hookfabric_realm_unreadable"+chosen, "{{instance}}")},
		{title: "Version of the configuration", about: "The active one, as each process knows it: one line unless it changes just now.", unit: number,
			queries: []query{{"hookfabric_config_version" + chosen, "{{instance}}"}, {"hookfabric_worker_config_version" + chosen, "{{instance}}, worker"}}},
	}}
}

// processWork is how much of it they have.
func processWork() row {
	return row{"Work", []panel{
		{title: "Events under way", about: "Events that a broker has and has not answered yet.", unit: number,
			queries: one("hookfabric_in_flight"+chosen, "{{instance}}")},
		{title: "Batches under way", about: "Batches that a worker runs, of those it may run at once.", unit: share, most: 1,
			queries: one("hookfabric_worker_in_flight"+chosen+" / hookfabric_worker_capacity"+chosen, "{{instance}}")},
		{title: "Behind", about: "How long a broker's copy of the queue has been behind.", unit: seconds,
			queries: one("hookfabric_mirror_lag_seconds"+chosen, "{{instance}}")},
		{title: "Copies that are missing", about: "On how many servers less than it should be a stream is kept whole: they are not heard of, or are catching up.", unit: number,
			queries: one(`max by (stream, state) (hookfabric_stream_copies{instance=~"$instance",state!="whole"})`, "{{stream}} {{state}}")},
	}}
}

// processConfiguration is what they go by.
func processConfiguration() row {
	return row{"Configuration", []panel{
		{title: "Reloads", about: "Times that the file of --config was applied again, by what came of it.", unit: perSecond,
			queries: one(rate("hookfabric_config_reloads_total"+chosen, "result"), "{{result}}")},
		{title: "File taken over", about: "1 if the last reload was good.", unit: number, most: 1,
			queries: one("hookfabric_config_reload_successful"+chosen, "{{instance}}")},
		{title: "Since the last good reload", about: "How long ago the file was last loaded well.", unit: seconds,
			queries: one("time() - hookfabric_config_reload_timestamp_seconds"+chosen, "{{instance}}")},
		{title: "Handlers that can not be loaded", about: "Their calls are denied where they land on this process.", unit: number,
			queries: one("hookfabric_worker_load_errors"+chosen, "{{instance}}")},
	}}
}

// processNeeds is what they take of their machines.
func processNeeds() row {
	return row{"Processes", []panel{
		{title: "Processors", about: "How many processors a process keeps busy.", unit: cores,
			queries: one("rate(process_cpu_seconds_total"+chosen+"[$__rate_interval])", "{{job}} {{instance}}")},
		{title: "Memory", about: "Resident memory.", unit: bytes,
			queries: one("process_resident_memory_bytes"+chosen, "{{job}} {{instance}}")},
		{title: "Open files", about: "Of those a process may have open. Each connection is one.", unit: share, most: 1,
			queries: one("process_open_fds"+chosen+" / process_max_fds"+chosen, "{{job}} {{instance}}")},
		{title: "Goroutines", about: "A number that only grows is a fault.", unit: number,
			queries: one("go_goroutines"+chosen, "{{job}} {{instance}}")},
	}}
}

// processSays is what else they tell.
func processSays() row {
	return row{"What is said", []panel{
		{title: "Feed records left out", about: "Records of verdicts that were dropped because the feed was full.", unit: perSecond,
			queries: one(rate("hookfabric_feed_dropped_total"+chosen, "instance"), "{{instance}}")},
		{title: "Records written", about: "Records of verdicts that the stream hook_record has.", unit: perSecond,
			queries: one(rate("hookfabric_record_written_total"+chosen, "instance"), "{{instance}}")},
		{title: "Records left out", about: "Records of verdicts that were not written down, by why.", unit: perSecond,
			queries: one(rate("hookfabric_record_dropped_total"+chosen, "instance, cause"), "{{instance}} {{cause}}")},
		{title: "Records waiting", about: "Records of verdicts that wait to be written.", unit: number,
			queries: one("hookfabric_record_waiting"+chosen, "{{instance}}")},
		{title: "Spans sent", about: "Spans of traces that a collector took; none where nobody traces.", unit: perSecond,
			queries: one(rate("hookfabric_spans_total"+chosen, "job, instance"), "{{job}} {{instance}}")},
		{title: "Spans left out", about: "Spans of traces that no collector took, or that too many others waited before.", unit: perSecond,
			queries: one(rate("hookfabric_spans_dropped_total"+chosen, "job, instance"), "{{job}} {{instance}}")},
		{title: "Pauses of the collector, longest", about: "The longest stop of a process by its garbage collector.", unit: seconds,
			queries: one(`max by (job, instance) (go_gc_duration_seconds{instance=~"$instance",quantile="1"})`, "{{job}} {{instance}}")},
	}}
}

package main

func brokers() dashboard {
	return dashboard{
		name: "brokers", title: "Brokers and workers", about: "Brokers and workers: their readiness, configuration and resources.",
		variables: instances(),
		rows:      []row{processState(), processWork(), processConfiguration(), processNeeds(), processRecords()},
	}
}

// processState shows whether processes can do their work.
func processState() row {
	return row{"State", []panel{
		{title: "Ready", about: "1 while /readyz of the process says ready.", unit: number, max: 1,
			queries: one("hookfabric_ready"+chosen, "{{job}} {{instance}}")},
		{title: "Connected", about: "1 while the connection to NATS is up. A broker has several: events of agents, requests, control of operators, and work for workers and storage.", unit: number, max: 1,
			queries: one("hookfabric_connected"+chosen, "{{instance}} {{connection}}")},
		{title: "Credentials", about: "Time until the credentials of --creds expire, and their lifetime when they were made. Credentials that never expire are not drawn.", unit: seconds,
			queries: []query{{"hookfabric_credentials_left_seconds" + chosen, "{{job}} {{instance}}"}, {"hookfabric_credentials_lifetime_seconds" + chosen, "{{job}} {{instance}}, lifetime"}}},
		{title: "Realm unreadable", about: "1 while the broker cannot read its realm. It then keeps the last permissions and still accepts revoked credentials.", unit: number, max: 1,
			queries: one("hookfabric_realm_unreadable"+chosen, "{{instance}}")},
		{title: "Configuration version", about: "The active version in each process. All lines are equal, except during a change.", unit: number,
			queries: []query{{"hookfabric_config_version" + chosen, "{{instance}}"}, {"hookfabric_worker_config_version" + chosen, "{{instance}}, worker"}}},
	}}
}

// processWork shows the load of processes and the state of their storage.
func processWork() row {
	return row{"Work", []panel{
		{title: "Events under way", about: "Events that a broker has received and not answered yet.", unit: number,
			queries: one("hookfabric_in_flight"+chosen, "{{instance}}")},
		{title: "Batches under way", about: "Batches that a worker runs, as a share of its concurrency.", unit: share, max: 1,
			queries: one("hookfabric_worker_in_flight"+chosen+" / hookfabric_worker_capacity"+chosen, "{{instance}}")},
		{title: "Queue lag", about: "How long the broker's copy of the queue has been behind JetStream.", unit: seconds,
			queries: one("hookfabric_mirror_lag_seconds"+chosen, "{{instance}}")},
		{title: "Incomplete copies", about: "Copies of each stream that are not complete: their server is silent (unheard) or still copying (behind).", unit: number,
			queries: one(`max by (stream, state) (hookfabric_stream_copies{instance=~"$instance",state!="whole"})`, "{{stream}} {{state}}")},
	}}
}

// processConfiguration shows how processes follow the configuration file.
func processConfiguration() row {
	return row{"Configuration", []panel{
		{title: "Reloads", about: "Publications of the file of --config, by result.", unit: perSecond,
			queries: one(rate("hookfabric_config_reloads_total"+chosen, "result"), "{{result}}")},
		{title: "Last reload succeeded", about: "1 if the broker published the file successfully the last time.", unit: number, max: 1,
			queries: one("hookfabric_config_reload_successful"+chosen, "{{instance}}")},
		{title: "Time since the last successful reload", about: "Time since the broker last published its file successfully.", unit: seconds,
			queries: one("time() - hookfabric_config_reload_timestamp_seconds"+chosen, "{{instance}}")},
		{title: "Handlers that cannot be loaded", about: "Handlers that the process cannot load. It denies their calls.", unit: number,
			queries: one("hookfabric_worker_load_errors"+chosen, "{{instance}}")},
	}}
}

// processNeeds shows the resources that processes use.
func processNeeds() row {
	return row{"Processes", []panel{
		{title: "Processors", about: "Processors that the process keeps busy.", unit: cores,
			queries: one("rate(process_cpu_seconds_total"+chosen+"[$__rate_interval])", "{{job}} {{instance}}")},
		{title: "Memory", about: "Resident memory of the process.", unit: bytes,
			queries: one("process_resident_memory_bytes"+chosen, "{{job}} {{instance}}")},
		{title: "Open files", about: "Open file descriptors, as a share of the limit. Each connection needs one.", unit: share, max: 1,
			queries: one("process_open_fds"+chosen+" / process_max_fds"+chosen, "{{job}} {{instance}}")},
		{title: "Goroutines", about: "Goroutines of the process. A number that only grows is a bug.", unit: number,
			queries: one("go_goroutines"+chosen, "{{job}} {{instance}}")},
	}}
}

// processRecords shows feed, record and traces.
func processRecords() row {
	return row{"Feed, record and traces", []panel{
		{title: "Feed records dropped", about: "Records that the broker dropped because the feed was full.", unit: perSecond,
			queries: one(rate("hookfabric_feed_dropped_total"+chosen, "instance"), "{{instance}}")},
		{title: "Records written", about: "Records of verdicts that the broker wrote into the stream hook_record.", unit: perSecond,
			queries: one(rate("hookfabric_record_written_total"+chosen, "instance"), "{{instance}}")},
		{title: "Records dropped", about: "Records of verdicts that the broker did not write, by cause.", unit: perSecond,
			queries: one(rate("hookfabric_record_dropped_total"+chosen, "instance, cause"), "{{instance}} {{cause}}")},
		{title: "Records waiting", about: "Records of verdicts that the broker has not written yet.", unit: number,
			queries: one("hookfabric_record_waiting"+chosen, "{{instance}}")},
		{title: "Spans sent", about: "Trace spans that a collector accepted. Without tracing there is no data.", unit: perSecond,
			queries: one(rate("hookfabric_spans_total"+chosen, "job, instance"), "{{job}} {{instance}}")},
		{title: "Spans dropped", about: "Trace spans that no collector accepted, or that found the queue full.", unit: perSecond,
			queries: one(rate("hookfabric_spans_dropped_total"+chosen, "job, instance"), "{{job}} {{instance}}")},
		{title: "Longest garbage collection pause", about: "The longest pause of the process for garbage collection.", unit: seconds,
			queries: one(`max by (job, instance) (go_gc_duration_seconds{instance=~"$instance",quantile="1"})`, "{{job}} {{instance}}")},
	}}
}

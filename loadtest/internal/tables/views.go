package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hookfabric/hookfabric/schema"
)

// views maps names to the functions that make a view of a folder.
func views() map[string]func(dir string) (string, error) {
	all := map[string]func(string) (string, error){
		"summary": summary, "costs": costs, "runs": runs, "checks": checks, "over": over, "growth": growth, "model": needs,
	}
	for name, g := range grids() {
		all[name] = func(dir string) (string, error) { return viewed(dir, g) }
	}
	return all
}

// files returns the runs in the order in which the pages list them.
func files() []string {
	return []string{"bench", "record", "loop", "shim", "notice", "state", "scale", "saturate", "faults", "overload", "freeze", "cluster"}
}

// read reads the file of a run into v; false: the folder has no such file.
func read(dir, run string, v any) (bool, error) {
	name := filepath.Join(dir, run+".json")
	body, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading figures: %w", err)
	}
	if err := schema.Unmarshal(body, v); err != nil {
		return false, fmt.Errorf("%s is not a report of `loadtest %s`: %w", name, run, err)
	}
	return true, nil
}

// grids maps names to views of figures.
func grids() map[string][]grid {
	return map[string][]grid{
		// These are ratios to a bare request-reply of the same repetition.
		"calls": {{run: "bench", columns: perCallers(), rows: []label{
			{"bare NATS, responder in the server's process", "floor-in, %s"},
			{"no hook matches", "no hook, %s"},
			{"1 hook inside the broker", "broker, 1 hook, %s"},
			{"3 hooks inside the broker", "broker, 3 hooks, %s"},
			{"8 hooks inside the broker", "broker, 8 hooks, %s"},
			{"bare NATS, that responder asks another process", "floor-out, %s"},
			{"1 hook on a worker", "pool, 1 hook, %s"},
			{"3 hooks on a worker", "pool, 3 hooks, %s"},
			{"8 hooks on a worker", "pool, 8 hooks, %s"},
			{"2 hooks, on workers of two pools", "two pools, %s"},
			{"each further pool adds", "each further pool in sequence, added, %s"},
		}}},
		// These are ratios of calls to HTTP hooks that do the same work.
		"webhooks": {{run: "bench", columns: perCallers(), rows: []label{
			{"1 hook inside the broker : webhook", "broker, 1 hook : webhook, 1 hook, %s"},
			{"3 hooks inside the broker : webhook", "broker, 3 hooks : webhook, 3 hooks, %s"},
			{"8 hooks inside the broker : webhook", "broker, 8 hooks : webhook, 8 hooks, %s"},
			{"1 hook on a worker : webhook in two stages", "pool, 1 hook : two HTTP stages, 1 hook, %s"},
			{"3 hooks on a worker : webhook in two stages", "pool, 3 hooks : two HTTP stages, 3 hooks, %s"},
			{"8 hooks on a worker : webhook in two stages", "pool, 8 hooks : two HTTP stages, 8 hooks, %s"},
		}}},
		"shim": {{run: "shim", columns: []label{{"p50", "p50, 1 caller"}}, rows: []label{
			{"`agentshim hook`, through the daemon", "agentshim hook, through the daemon, %s"},
			{"`agentshim hook`, direct", "agentshim hook, direct, %s"},
			{"`agentshim version`", "agentshim version, %s"},
			{"Python script with one request on a unix socket", "Python hook, one request on a unix socket, %s"},
		}}},
		// These are ratios of an agent's whole query to as many bare request-replies.
		"loop": {{run: "loop", columns: perCallers(), rows: []label{
			{"no hook", "no hook, tools in sequence, %s"},
			{"a hook on each event, condition false", "a hook on each event whose when is false, tools in sequence, %s"},
			{"a hook on each event, inside the broker", "a hook on each event inside broker, tools in sequence, %s"},
			{"a hook on each event, on a worker", "a hook on each event of a remote pool, tools in sequence, %s"},
			{"no hook, tools in parallel", "no hook, tools at once, %s"},
			{"a hook on each event, on a worker, tools in parallel", "a hook on each event of a remote pool, tools at once, %s"},
		}}},
		// This compares brokers that record verdicts with one that does not.
		"record": {{run: "record", columns: []label{{"without content (default)", "the facts"}, {"with content", "the content, too"}}, rows: []label{
			{"p50 : no record, 2,000 calls/s", "p50 with %s : no record, 2000 times a second"},
			{"broker's CPU per call : no record, 2,000 calls/s", "CPU of the broker per call with %s : no record, 2000 times a second"},
			{"broker's CPU per call, added, 2,000 calls/s", "CPU of the broker per call, added by %s, 2000 times a second"},
			{"throughput : no record, 16 callers", "throughput with %s : no record, 16 callers flat out"},
			{"p50 : no record, 16 callers", "p50 with %s : no record, 16 callers flat out"},
			{"broker's CPU per call, added, 16 callers", "CPU of the broker per call, added by %s, 16 callers flat out"},
		}}},
		// These are ratios to a bare write of a key in the same server.
		"queue": {{
			run: "state", columns: []label{
				{"accept 1 item", "enqueue : bare KV write, p50, 1 caller"},
				{"deliver 1 item with a call", "what 1 item adds to a call : bare KV write, p50, 1 caller"},
				{"deliver 8 items with a call", "what 8 items add to a call : bare KV write, p50, 1 caller"},
			},
			rows: []label{
				{"1 server, sync always", "one server, sync always: %s"},
				{"1 server, sync every second", "one server, sync every second: %s"},
				{"3 servers, sync always", "three servers, sync always: %s"},
				{"3 servers, sync every second", "three servers, sync every second: %s"},
			},
		}},
		"notice": {{run: "notice", columns: single(), rows: []label{
			{"a worker is killed, embedded server", "noticing a worker's crash, embedded server"},
			{"a worker is killed, external server", "noticing a worker's crash, external server"},
			{"a worker hangs", "noticing a worker's hang"},
			{"an aggregator is killed", "noticing an aggregator's loss"},
		}}},
		"freeze": {{run: "freeze", columns: single(), rows: []label{
			{"first call is refused", "the first call is refused"},
			{"last call passes", "the last call passes"},
			{"every broker has confirmed the freeze", "every broker has confirmed the freeze"},
			{"each of 1,000 shims had a call refused (one call per 500 ms each)", "each of 1000 shims had a refused call, with one call per 500ms"},
			{"every broker has confirmed the thaw", "every broker has confirmed the thaw"},
		}}},
		"knee": {{run: "saturate", columns: single(), rows: []label{{"tool calls, 200 agents", "knee: tools used"}}}},
		"overload": {{run: "overload", columns: single(), rows: []label{
			{"p99 before the overload", "p99 before"},
			{"p99 during the overload", "p99 while overloaded"},
			{"events answered during the overload", "events answered while overloaded"},
			{"time until p99 is normal again", "recovery"},
			{"largest memory of a broker", "memory of a broker at most"},
		}}},
		// These are the load as a whole, the impact of each kind of fault, and the growth of processes.
		"faults": {
			{run: "faults", columns: single(), rows: []label{
				{"events answered", "events answered"},
				{"p50", "p50"},
				{"p99", "p99"},
				{"fabric's CPU per event", "CPU time of the fabric per event"},
			}},
			{
				run: "faults", title: "Calls are slow or unanswered for, median",
				columns: []label{{"broker", "broker"}, {"worker", "worker"}, {"NATS server", "server"}, {"agents' process", "driver"}},
				rows: []label{
					{"kill -9", "felt: kill of a %s"},
					{"stop (SIGSTOP)", "felt: stop of a %s"},
					{"connection reset", "felt: reset of a %s"},
					{"network silent", "felt: cut of a %s"},
					{"latency added", "felt: delay of a %s"},
					{"bandwidth limited", "felt: slow of a %s"},
				},
			},
			{
				run: "faults", title: "Growth in the second half of the run",
				columns: []label{{"heap", "heap"}, {"memory", "memory"}},
				rows: []label{
					{"broker 1", "%s of broker-1, growth"},
					{"broker 2", "%s of broker-2, growth"},
					{"NATS server", "%s of server, growth"},
					{"worker 1", "%s of worker-1, growth"},
				},
			},
		},
		// This is the impact on calls and the queue while each of three brokers fails.
		"cluster": {{
			run: "cluster", columns: []label{
				{"p50 of a call : bare request", "p50 : that of a bare request-reply"},
				{"longest call", "longest wait under faults"},
				{"queue accepts nothing for", "longest time in which the queue accepted nothing"},
				{"all brokers have everything again after", "longest time from a fault until all brokers had the complete state again"},
			},
			rows: []label{
				{"restart in turn", "rolling: %s"},
				{"restart while configurations change", "change: %s"},
				{"kill -9", "kill: %s"},
				{"stop (SIGSTOP)", "stop: %s"},
				{"cut off", "part: %s"},
				{"cut off in one direction", "one-way: %s"},
				{"freeze while one is cut off", "freeze: %s"},
			},
		}},
	}
}

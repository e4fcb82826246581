package main

import "github.com/spf13/cobra"

// examples are one or two command lines for each command.
func examples() map[string]string {
	return map[string]string{
		"loadtest": "  loadtest\n  loadtest --for 1m --out /tmp/report",
		"bench":    "  loadtest bench --only pool --quick\n  loadtest bench --json new.json --html new.html",
		"scale":    "  loadtest scale --only hooks,agents --json scale.json",
		"model":    "  loadtest model --agents 50000 --units scale.json",
		"crash":    "  loadtest crash --for 1m --kill broker",
		"state":    "  loadtest state --only speed",
		"shim":     "  loadtest shim --reps 10",
		"loop":     "  loadtest loop --json loop.json",
		"notice":   "  loadtest notice --reps 20",
		"freeze":   "  loadtest freeze --shims 200",
		"cluster":  "  loadtest cluster --only kill,stop --rate 50",
		"record":   "  loadtest record --rate 500",
		"fleet":    "  loadtest fleet --agents 500 --rate 1000 --for 1m\n  loadtest fleet --nats nats://10.0.0.5:4222 --creds operator.creds",
		"saturate": "  loadtest saturate --agents 1000 --brokers 2",
		"overload": "  loadtest overload --rate 4000 --for 30s",
		"chaos":    "  loadtest chaos --kinds kill,stop --members 'worker-*' --for 5m",
		"soak":     "  loadtest soak --for 1h --chaos --of-knee 0.7",
		"run":      "  loadtest run loadtest/figures/faults.yaml --json faults.json",
		"compare":  "  loadtest compare old.json new.json\n  loadtest compare old1.json old2.json : new1.json new2.json",
		"show":     "  loadtest show fleet.json --html fleet.html",
		"tables":   "  loadtest tables loadtest/figures --into README.md",
	}
}

// withExamples adds its example to each command.
func withExamples(root *cobra.Command) *cobra.Command {
	all := examples()
	for _, c := range append(root.Commands(), root) {
		c.Example = all[c.Name()]
	}
	return root
}

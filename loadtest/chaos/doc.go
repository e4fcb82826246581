// Package chaos runs a fleet of agents under load while random faults happen: brokers,
// workers, their server and the agents' processes are killed and stopped, and the network
// between them is slow, silent or cut. Except for missing answers, the checks are those of
// a fleet without faults.
//
// draw.go draws the faults, felt.go measures the impact of each, and run.go runs them.
package chaos

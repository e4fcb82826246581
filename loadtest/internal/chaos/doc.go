// Package chaos runs a fleet of agents under load while faults happen: brokers, workers, their
// server, daemons and the agents' processes are killed and stopped, and the network between them
// is slow, silent or cut. Except for missing answers, the checks are those of a fleet without
// faults. The scenarios crash and soak run here, too: crash only kills, and soak checks that
// memory, goroutines, threads and open files do not grow.
//
// run.go draws the faults and runs a scenario, felt.go measures the impact of each fault, and
// grow.go judges growth.
//
// cluster.go runs the scenario of a cluster of brokers, part by part, each under its own load.
// Each broker has its own network namespace if the machine allows it. steps.go
// causes the faults of a part, streams.go reads leaders and incomplete streams, freeze.go
// freezes agents while a broker is cut off, and clusterdoc.go writes the report.
package chaos

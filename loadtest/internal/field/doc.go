// Package field starts the fabric of a load test: brokers, workers and an optional server.
// Each is a process, with a network between them that can fail if needed. A scenario adds
// its own processes, so that faults and the sampling of memory and CPU include them.
//
// field.go starts and stops everything, local.go starts the processes of a fabric or a
// cluster, and external.go connects to an existing fabric.
package field

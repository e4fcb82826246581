// Package soak has a fleet of agents under a load that does not change, for long,
// and looks whether the fabric's processes take more and more: memory, goroutines,
// threads, files. It is the load of package fleet, with all of its checks; faults
// may be part of it.
//
// grow.go judges what was seen, and run.go runs it.
package soak

// Package soak keeps a fleet of agents under constant load for a long time, and checks
// that memory, goroutines, threads and open files of the fabric's processes do not grow. It
// has all checks of package fleet, and can include faults.
//
// grow.go judges the samples, and run.go runs the load.
package soak

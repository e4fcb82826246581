// Package cluster tests a cluster of three brokers under the load of a fleet, whose every
// answer is checked. Each broker has its own network namespace if the machine allows it
// (package lan). A broker is killed, stopped, restarted, or cut off from the others in one
// or both directions. All brokers are restarted in turn, also while configurations change,
// and agents are frozen while a broker is cut off.
//
// run.go runs the parts, each under its own load, so that clients are spread over all
// brokers again. The next fault waits until all brokers have the complete state; if that
// takes long, the part continues under another load. steps.go has the faults of a part, and
// streams.go reads leaders and incomplete streams. teller.go sends items to the queue
// through each broker all the time, freeze.go freezes agents, and document.go writes the report.
package cluster

// Package crash shows that no injection is lost, whatever process dies. It runs
// a broker, hookworkers, shims that hold many agents each and producers that
// put injections into the queue, kills them at random as a power cut of their
// process would, and starts them again.
//
// What counts is written down where it happens, and package audit holds it
// against each other and against the list of the killed.
//
// shim.go is the processes with agents, field.go puts all of them up and says
// when each is killed, run.go is the run and report.go what comes of it.
package crash

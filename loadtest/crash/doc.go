// Package crash shows that no injection is lost, whatever process dies. It runs
// a broker, hookworkers, shims that hold many agents each and producers that
// put injections into the queue, kills them at random as a power cut of their
// process would, and starts them again.
//
// What counts is written down where it happens, outside of the fabric: a
// producer logs each receipt, a shim logs each injection that it handed over,
// before it acknowledges it (journal.go). The audit holds the two logs against
// each other and against the list of the killed (audit.go). It believes
// nothing that the fabric says of itself but the receipts.
//
// producer.go and shim.go are the processes, fault.go kills them, run.go is the
// run and report.go what comes of it.
package crash

// Package notice measures how long the fabric takes to notice a loss: a worker that was
// killed or that hangs, or an aggregator that was killed. At that time, calls are in
// progress, each with an idempotent hook that refuses it after a while. The time runs from
// just before the signal until the hook starts again in another process, which reports
// it by the clock of the same machine. It includes the signal, its detection, the decision
// and the second request, but not the hook's own time.
//
// worker.go is the worker that reports starts of hooks, stand.go the fabric, loss.go the
// losses, and run.go the repetitions and the result.
package notice

// Package notice measures how long it takes until somebody is missed: a worker
// that was killed or that hangs, and an aggregator that was killed. Calls are
// under way when that happens, each with an idempotent hook that refuses it after a
// while. What counts is the time from just before the signal to the moment at which
// the hook begins again in another process, as that process tells it by the clock of
// the same machine. So the signal, the news, the decision and the second request
// are all in it, and the hook's own time is not.
//
// worker.go is the worker that tells when hooks begin, stand.go the fabric, loss.go
// what is lost and how, run.go the repetitions and report.go what comes of them.
package notice

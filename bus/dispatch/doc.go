// Package dispatch decides. It plans which hooks run for an event, has workers run them
// in batches, and folds the outcomes into one verdict. It does not know NATS or
// processes: it reaches workers through the one-method interface [Caller] and tracks them
// in [Members].
//
// Concurrency: a [Snapshot] and its plans are immutable once compiled, and all calls that
// are pinned to it share them. [Members] and [Dispatcher] are safe for concurrent use.
// [Dispatcher.Dispatch] always returns a verdict: a failure of a hook, of a worker or of
// this package is an outcome, to which the failure policy of the hook applies.
//
// To follow an event, read plan.go (which hooks, in which batches), dispatcher.go (the
// waves), when.go (conditions), batch.go and answers.go (one batch, until it has
// outcomes), members.go and queue.go (the workers, their batches and their queues),
// settle.go (an outcome becomes a part of a verdict), fold.go (the parts become one
// verdict) and shadow.go (hooks in shadow mode).
//
// Only this module imports it.
package dispatch

// Package dispatch thinks: it plans which hooks run for an event, has workers
// run them in batches, and folds what came of it into one verdict. It knows no
// bus and no process: it sees workers through a one-method [Caller] and learns
// of their life through [Members]. Apart from waiting it is pure.
//
// Concurrency: a [Snapshot] and its plans are immutable once compiled and
// shared by all calls that are pinned to it; [Members] and [Dispatcher] are
// safe for many goroutines. [Dispatcher.Dispatch] always returns a verdict: a
// failure of a hook, a worker or this package is an outcome, and follows the
// failure policy of the hooks it hit.
//
// To follow an event, read compile.go and plan.go (which hooks, in which
// batches), stages.go (hooks that no worker runs), dispatcher.go (the waves),
// when.go (conditions), batch.go and answers.go (one batch, until it has
// outcomes; doubt.go where a handler can not be loaded), members.go, queue.go
// and flights.go (the workers, who waits for them, what they have in hand),
// settle.go (an outcome becomes a part of a verdict), fold.go (the parts become
// one) and shadow.go (what would have been).
package dispatch

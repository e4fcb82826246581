// Package workers runs hooks. A [Worker] takes batches, from the bus or from
// the aggregator in its own process, runs each hook through the runner of its
// kind under the hook's own deadline, and answers with outcomes, always. The
// sub-packages are the runners; [Serve] lets programs of users run hooks of
// their own in Go.
//
// A handler gets an event and returns a result: the zero Result is no opinion, and
// package schema has words for the others, such as schema.Denied and schema.Retried.
// An error is no answer, for which the hook's failure policy decides. [When] gives a
// handler a condition of its own. The event's History is there only for hooks that
// say that they need it, whole, however it travelled; where it can not be had the hook
// is not run, and has failed.
package workers

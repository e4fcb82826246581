// Package workers runs hooks. A [Worker] takes batches, from the bus or from
// the aggregator in its own process, runs each hook through the runner of its
// kind under the hook's own deadline, and answers with outcomes, always. The
// sub-packages are the runners; [Serve] lets programs of users run hooks of
// their own in Go.
package workers

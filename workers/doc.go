// Package workers runs hooks. A [Worker] receives batches from the bus, or from the
// aggregator in its own process. It runs each hook with the runner of the hook's kind,
// under the hook's own deadline, and always answers with outcomes. The sub-packages are
// the runners. With [Serve], a program runs its own hooks in Go.
//
// A [Handler] gets an event and returns a [schema.Result]. The zero Result means that the
// hook has no opinion; package schema has constructors for other results, such as
// [schema.Denied] and [schema.Retried]. If a handler returns an error, the hook's failure
// policy decides. [When] adds a condition to a handler.
//
// Event.History is set only for hooks that need the conversation, and is then complete. If
// the worker cannot fetch it, the worker does not run the hook, and the hook has failed.
package workers

package workers

import (
	"context"

	"github.com/hookfabric/hookfabric/schema"
)

// A Handler runs one hook for one event. Its context ends at the hook's
// deadline; a Handler that returns later than that was not heard. It must be
// safe for many goroutines and must not change the event.
//
// An error means that the hook has no answer: the hook's failure policy
// decides; one that is an [*UnloadedError] is judged as if Load had returned it.
// A refusal is not an error but a [schema.Result].
type Handler interface {
	Handle(ctx context.Context, e *schema.Event) (schema.Result, error)
}

// An UnloadedError says why a handler that was loaded once can not be any more.
// Calls of such a hook are denied, as if it never could.
type UnloadedError struct{ Err error }

func (e *UnloadedError) Error() string { return e.Err.Error() }
func (e *UnloadedError) Unwrap() error { return e.Err }

// A HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, e *schema.Event) (schema.Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	return f(ctx, e)
}

// A Runner makes handlers of one kind: it is what stands behind a hook's type.
type Runner interface {
	// Load prepares the handler of h, or says in a sentence why it can not be:
	// calls of a hook that can not be loaded are denied. It is called once per
	// hook and config version. A handler that is an [io.Closer] is closed when no
	// version that is held has it any more and its last call has returned.
	Load(h schema.Hook, at Site) (Handler, error)
	// Close ends everything the runner has started and waits for it.
	Close() error
}

// A Site is where a hook is loaded: what its configuration and its worker say
// for all hooks alike.
type Site struct {
	// Dirs are where relative programs and modules are looked up, in order.
	Dirs []string
	// Python says how functions are run.
	Python schema.PythonHosts
}

// A Factory makes the handler of a builtin hook from its configuration.
type Factory func(h schema.Hook) (Handler, error)

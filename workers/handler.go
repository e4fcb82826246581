package workers

import (
	"context"

	"github.com/hookfabric/hookfabric/schema"
)

// A Handler runs one hook for one event. Its context ends at the hook's deadline; the
// worker ignores a later result. A Handler must be safe for concurrent use, and must not
// change the event.
//
// If Handle returns an error, the hook's failure policy decides. An [*UnloadedError] counts
// as an error of [Runner.Load]. To deny, return a [schema.Result], not an error.
type Handler interface {
	Handle(ctx context.Context, e *schema.Event) (schema.Result, error)
}

// An UnloadedError says why a handler that was loaded before can no longer run. The fabric
// denies the calls of its hook, as for a handler that failed to load.
type UnloadedError struct{ Err error }

func (e *UnloadedError) Error() string { return e.Err.Error() }
func (e *UnloadedError) Unwrap() error { return e.Err }

// A HandlerFunc is a function that implements [Handler].
type HandlerFunc func(ctx context.Context, e *schema.Event) (schema.Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	return f(ctx, e)
}

// A Runner makes the handlers of one kind, such as command or http.
type Runner interface {
	// Load prepares the handler of h. Its error is one sentence that says what to change;
	// the fabric denies the calls of a hook that fails to load. The worker calls Load once
	// per hook and config version. It closes a handler that is an [io.Closer] when no
	// version that it holds uses the handler and the last call has returned.
	Load(h schema.Hook, at Site) (Handler, error)
	// Close ends everything that the runner started, and waits for it.
	Close() error
}

// A Site has the settings of the configuration and the worker that apply to all hooks.
type Site struct {
	// Dirs are the folders in which the worker looks up relative programs and modules, in order.
	Dirs []string
	// Python has the settings of the processes that run Python functions.
	Python schema.PythonHosts
}

// A Factory makes the handler of a builtin hook from its configuration.
type Factory func(h schema.Hook) (Handler, error)

// Package builtins runs the hooks of a catalog inside the worker. The worker, not this
// package, catches panics of handlers.
package builtins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// New makes the runner of the hooks that catalog names. The catalog must not
// change afterwards.
func New(catalog map[string]workers.Factory) workers.Runner { return runner(catalog) }

// runner starts nothing, so it has nothing to close.
type runner map[string]workers.Factory

// Load makes the handler that h names, with its options.
func (r runner) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	factory, ok := r[h.Handler]
	if !ok {
		return nil, fmt.Errorf("there is no builtin %q; write one of %s", h.Handler, strings.Join(slices.Sorted(maps.Keys(r)), ", "))
	}
	if h.Shell || len(h.Args) > 0 || len(h.Env) > 0 {
		return nil, errors.New("shell, args and env are for programs; configure a builtin with options")
	}
	return factory(h)
}

func (r runner) Close() error { return nil }

package runners

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Builtins makes the runner of the hooks that catalog names, which run inside the worker. The catalog must
// not change afterwards. The worker catches panics of handlers.
func Builtins(catalog map[string]workers.Factory) workers.Runner { return builtins(catalog) }

// builtins starts nothing, so it has nothing to close.
type builtins map[string]workers.Factory

// Load makes the handler that h names, with its options.
func (b builtins) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	factory, ok := b[h.Handler]
	if !ok {
		return nil, fmt.Errorf("there is no builtin %q; write one of %s", h.Handler, strings.Join(slices.Sorted(maps.Keys(b)), ", "))
	}
	if h.Shell || len(h.Args) > 0 || len(h.Env) > 0 {
		return nil, errors.New("shell, args and env are for programs; configure a builtin with options")
	}
	return factory(h)
}

func (b builtins) Close() error { return nil }

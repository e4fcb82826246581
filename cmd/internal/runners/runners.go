// Package runners is the set of runners that the commands' workers have: one
// line for each kind.
package runners

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/builtins"
	"github.com/hookfabric/hookfabric/workers/command"
)

// New makes the runners of one worker.
func New(log *slog.Logger) (map[schema.Kind]workers.Runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, which watches over the processes of hooks: %w", err)
	}
	return map[schema.Kind]workers.Runner{
		schema.Builtin: builtins.New(builtin.Catalog(log)),
		schema.Command: command.New(command.Options{Logger: log, Watchdog: []string{self, command.WatchdogArg}}),
	}, nil
}

// Inline are the kinds whose handlers return at once.
func Inline() []schema.Kind { return []schema.Kind{schema.Builtin} }

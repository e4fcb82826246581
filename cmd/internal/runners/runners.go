// Package runners lists the runners of the workers in the commands, one line for each kind.
package runners

import (
	"log/slog"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/cel"
	"github.com/hookfabric/hookfabric/workers/command"
	"github.com/hookfabric/hookfabric/workers/python"
	"github.com/hookfabric/hookfabric/workers/rules"
	"github.com/hookfabric/hookfabric/workers/webhook"
)

// New returns the runners of one worker.
func New(log *slog.Logger) map[schema.Kind]workers.Runner {
	builtins := builtin.Catalog(log)
	builtins[schema.RulesHandler] = rules.Factory()
	return map[schema.Kind]workers.Runner{
		schema.Builtin: Builtins(builtins),
		schema.CEL:     cel.New(),
		schema.Command: command.New(command.Options{Logger: log, Watchdog: command.SelfWatchdog()}),
		schema.Python:  python.New(python.Options{Logger: log, Watchdog: command.SelfWatchdog()}),
		schema.HTTP:    webhook.New(webhook.Options{Logger: log}),
	}
}

// Watchdog runs the watchdog of hook processes and exits, if the command line asks for it.
func Watchdog(args []string) { command.RunWatchdog(args) }

// Inline returns the kinds whose handlers return at once.
func Inline() []schema.Kind { return []schema.Kind{schema.Builtin, schema.CEL} }

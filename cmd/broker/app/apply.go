package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// changeTime bounds a change: the brokers wait at most a minute until every node has loaded it,
// and then answer.
const changeTime = 70 * time.Second

// stdinName is the name of stdin in messages.
const stdinName = "stdin"

// applyCommand is `broker apply`.
func applyCommand() *cobra.Command {
	var change changing
	c := &cobra.Command{
		Use: "apply FILE", Short: "Make a hooks.yaml the active configuration of all brokers and workers",
		Long: "apply checks a hooks.yaml, sends it to the brokers, and waits until every node has loaded it. If the file has faults\n" +
			"or a node cannot load a handler, the command names them and nothing changes. Each node looks up relative handlers in\n" +
			"the file's folder. The file - is stdin.",
		Example: "  broker apply hooks.yaml",
		Args:    takes(1, 1, "one file, or - for stdin"),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := applyRequest(args[0], c.InOrStdin())
			if err != nil {
				return reportCheck(c, sourceName(args[0]), nil, err)
			}
			return change.run(c, req, req.File)
		},
	}
	change.flags(c)
	return c
}

// takes returns a check of the number of arguments.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return program.UsageError("%s takes %s; see '%s --help'", c.Name(), what, c.CommandPath())
		}
		return nil
	}
}

// applyRequest returns the request to apply a file; a file with faults is an error.
func applyRequest(path string, stdin io.Reader) (schema.ConfigRequest, error) {
	data, err := readSource(path, stdin)
	if err != nil {
		return schema.ConfigRequest{}, err
	}
	name := sourceName(path)
	doc, err := checkConfig(name, data)
	if err != nil {
		return schema.ConfigRequest{}, err
	}
	return schema.ConfigRequest{
		Action: schema.ActionApply, Source: string(data), Files: doc.Files, File: filepath.Base(name), Dir: doc.Config.Dir,
	}, nil
}

func readSource(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return readBounded(stdin)
	}
	return readFile(path)
}

// sourceName returns the name of a file in messages. Configurations from stdin belong to the
// current folder.
func sourceName(path string) string {
	if path == "-" {
		return stdinName
	}
	return path
}

// changing is a call of a command that changes the active version.
type changing struct {
	remote
	force, asJSON bool
}

func (k *changing) flags(c *cobra.Command) {
	k.remote.flags(c)
	c.Flags().BoolVar(&k.force, "force", false, "activate the version even if a node cannot load a handler; calls of that hook are denied")
	c.Flags().BoolVar(&k.asJSON, "json", false, "print JSON")
}

// run makes the request and prints its result; what names the new configuration.
func (k *changing) run(c *cobra.Command, req schema.ConfigRequest, what string) error {
	stderr := c.ErrOrStderr()
	req.Force = k.force
	k.wait = changeTime
	k.slow = func() { fmt.Fprintln(stderr, "waiting until every node has loaded the version …") }
	answer, err := k.config(c.Context(), req)
	if err != nil {
		return inDoubt(err, what)
	}
	for _, text := range slices.Concat(answer.Warnings, problems(answer)) {
		_ = printLine(stderr, "%s", text)
	}
	if k.asJSON {
		if err := printJSON(c.OutOrStdout(), answer); err != nil {
			return err
		}
	}
	switch {
	case answer.Refused && k.force:
		return fmt.Errorf("%s was rejected, and nothing changed: a broker cannot use it at all, which --force does not override", what)
	case answer.Refused:
		return fmt.Errorf("%s was rejected, and nothing changed; correct the problems above, or activate it with --force", what)
	case k.asJSON:
		return nil
	}
	return printLine(c.OutOrStdout(), "%s", k.changed(c.Context(), answer))
}

// inDoubt adds to the error of an unanswered request how to find out whether it took effect.
func inDoubt(err error, what string) error {
	if lost, ok := errors.AsType[*noAnswer](err); ok && lost.received() {
		return fmt.Errorf("%w; %s may have been applied: look with 'broker config history'", err, what)
	}
	return err
}

// problems returns one line per node and hook that cannot be loaded.
func problems(answer *schema.ConfigAnswer) []string {
	lines := make([]string, len(answer.Problems))
	for i, p := range answer.Problems {
		lines[i] = fmt.Sprintf("node %s: %s", p.Node, p.Error)
		if p.Hook != "" {
			lines[i] = fmt.Sprintf("node %s cannot load hook %s: %s", p.Node, p.Hook, p.Error)
		}
	}
	return lines
}

// changed describes the active version and the previous one. Without the history it leaves out
// their numbers of hooks.
func (k *changing) changed(ctx context.Context, answer *schema.ConfigAnswer) string {
	if !answer.Changed {
		return fmt.Sprintf("nothing changed: version %d is active and has the same content; to load changed Python code, restart the workers", answer.Version)
	}
	line := fmt.Sprintf("version %d is active", answer.Version)
	k.wait, k.slow = 0, nil
	answered, err := k.config(ctx, schema.ConfigRequest{Action: schema.ActionHistory})
	if err != nil {
		return line
	}
	if now := versionIn(answered.History, answer.Version); now != nil {
		line += fmt.Sprintf(": %d hooks", now.Hooks)
	}
	if old := before(answered.History, answer.Version); old != nil {
		line += fmt.Sprintf(" (was version %d: %d hooks)", old.Version, old.Hooks)
	}
	return line
}

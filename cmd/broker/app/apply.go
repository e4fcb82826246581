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

// changeTime is how long a change may take: the brokers give themselves a minute
// until every node has loaded it, and then have to say so.
const changeTime = 70 * time.Second

// stdinName is what a configuration from stdin is called.
const stdinName = "stdin"

// applyCommand makes a hooks.yaml the active version.
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
				return tell(c, sourceName(args[0]), nil, err)
			}
			return change.run(c, req, req.File)
		},
	}
	change.flags(c)
	return c
}

// takes is how many arguments a command takes, and what they are.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return program.UsageError("%s takes %s; see '%s --help'", c.Name(), what, c.CommandPath())
		}
		return nil
	}
}

// applyRequest is the request to apply a file that has no faults.
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
		Action: schema.ActionApply, Source: string(data), File: filepath.Base(name), Dir: doc.Config.Dir,
	}, nil
}

func readSource(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return readBounded(stdin)
	}
	return readFile(path)
}

// sourceName names a file in messages. What stands on stdin has the current
// folder for its own.
func sourceName(path string) string {
	if path == "-" {
		return stdinName
	}
	return path
}

// changing is a command that changes the active version.
type changing struct {
	remote
	force, asJSON bool
}

func (k *changing) flags(c *cobra.Command) {
	k.remote.flags(c)
	c.Flags().BoolVar(&k.force, "force", false, "activate the version even if a node cannot load a handler; calls of that hook are denied")
	c.Flags().BoolVar(&k.asJSON, "json", false, "print JSON")
}

// run makes the request, which is about what, and tells what came of it.
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
		_ = line(stderr, "%s", text)
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
	return line(c.OutOrStdout(), "%s", k.changed(c.Context(), answer))
}

// inDoubt says what is not known when a request was not answered.
func inDoubt(err error, what string) error {
	if lost, ok := errors.AsType[*noAnswer](err); ok && lost.received() {
		return fmt.Errorf("%w; %s may have been applied: look with 'broker config history'", err, what)
	}
	return err
}

// problems says, node by node, what cannot be loaded.
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

// changed says which version is active now, and which was before. The history
// tells how large they are; it is not worth failing for.
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
	if now := kept(answered.History, answer.Version); now != nil {
		line += fmt.Sprintf(": %d hooks", now.Hooks)
	}
	if old := before(answered.History, answer.Version); old != nil {
		line += fmt.Sprintf(" (was version %d: %d hooks)", old.Version, old.Hooks)
	}
	return line
}

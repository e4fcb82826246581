package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// registering is one call of a subcommand of `broker hooks`.
type registering struct {
	remote
	agent         string
	force, asJSON bool
}

// hooksCommand is `broker hooks`.
func hooksCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "hooks", Short: "Register, list and remove hooks at run time",
		Long: "hooks manages hooks that are registered at run time, in addition to those of the hooks.yaml. They are for all agents,\n" +
			"or with --agent for one, and stay when a file is applied.",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var add, remove, list registering
	register := &cobra.Command{
		Use: "register FILE", Short: "Register the hooks in a file", Args: takes(1, 1, "one file, or - for stdin"),
		Long: "register adds hooks and waits until every node has loaded them. FILE holds the value of hooks: in a hooks.yaml, as\n" +
			"JSON; - is stdin. A registered hook of the same name is replaced.",
		Example: "  echo '{\"PreToolUse\": [{\"name\": \"audit\", \"handler\": \"./check.sh\"}]}' >extra.json\n" +
			"  broker hooks register extra.json --agent scout",
		RunE: func(c *cobra.Command, args []string) error { return add.register(c, args[0]) },
	}
	unregister := &cobra.Command{
		Use: "unregister NAME...", Short: "Remove registered hooks", Args: cobra.ArbitraryArgs,
		Long:    "unregister removes hooks that were registered at run time, by name.",
		Example: "  broker hooks unregister audit --agent scout",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return program.UsageError("no hook is named; use names that 'broker hooks list' shows")
			}
			return remove.change(c, &schema.HooksRequest{Action: schema.ActionUnregister, Names: args}, "unregistered")
		},
	}
	shown := &cobra.Command{
		Use: "list", Short: "List registered hooks", Args: program.NoArgs,
		Long:    "list shows the hooks that were registered at run time: name, event, matcher, type and handler.",
		Example: "  broker hooks list --json",
		RunE:    func(c *cobra.Command, _ []string) error { return list.list(c) },
	}
	add.flags(register)
	register.Flags().BoolVar(&add.force, "force", false, "activate the version even if a node cannot load a handler; calls of that hook are denied")
	remove.flags(unregister)
	list.flags(shown)
	c.AddCommand(register, unregister, shown)
	return c
}

func (k *registering) flags(c *cobra.Command) {
	k.remote.flags(c)
	c.Flags().StringVar(&k.agent, "agent", "", "hooks of this agent only: a name, or a pattern such as build-* (default: hooks of all agents)")
	c.Flags().BoolVar(&k.asJSON, "json", false, "print JSON")
}

func (k *registering) register(c *cobra.Command, path string) error {
	data, err := readSource(path, c.InOrStdin())
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Dir(path)) // the current folder for stdin
	if err != nil {
		return fmt.Errorf("cannot find the folder of %s: %w", sourceName(path), err)
	}
	req := &schema.HooksRequest{Action: schema.ActionRegister, Dir: dir, Force: k.force}
	if schema.Unmarshal(data, &req.Hooks) != nil {
		return fmt.Errorf(`%s is not JSON; write the value of hooks: in a hooks.yaml, as JSON, such as {"PreToolUse": [{"handler": "./check.sh"}]}`, sourceName(path))
	}
	warnOfAgents(c.ErrOrStderr(), k.agent)
	return k.change(c, req, "registered")
}

// change makes a request that changes hooks, and prints the result.
func (k *registering) change(c *cobra.Command, req *schema.HooksRequest, done string) error {
	stderr := c.ErrOrStderr()
	k.wait = changeTime
	k.slow = func() { fmt.Fprintln(stderr, "waiting until every node has loaded the version …") }
	var answer schema.HooksAnswer
	if err := k.ask(c.Context(), "hooks", k.agent, req, &answer); err != nil {
		return err
	}
	for _, problem := range problems(&schema.ConfigAnswer{Problems: answer.Problems}) {
		if err := printLine(stderr, "%s", problem); err != nil {
			return err
		}
	}
	if k.asJSON {
		if err := printJSON(c.OutOrStdout(), answer); err != nil || !answer.Refused {
			return err
		}
	}
	if answer.Refused {
		return errors.New("the hooks were rejected, and nothing changed; correct the problems above, or register them with --force")
	}
	return printLine(c.OutOrStdout(), "%s %s: version %d is active", done, strings.Join(answer.Names, ", "), answer.Version)
}

func (k *registering) list(c *cobra.Command) error {
	var answer schema.HooksAnswer
	if err := k.ask(c.Context(), "hooks", k.agent, &schema.HooksRequest{Action: schema.ActionList}, &answer); err != nil {
		return err
	}
	if k.asJSON {
		return printJSON(c.OutOrStdout(), answer)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i := range answer.Hooks {
		h := &answer.Hooks[i]
		row(w, h.Name, h.Event, matcherOf(h), h.Type, word(h.Handler))
	}
	return w.Flush()
}

// matcherOf returns a hook's matcher, or * if it matches everything.
func matcherOf(h *schema.Hook) string {
	if h.Matcher == "" {
		return "*"
	}
	return word(h.Matcher)
}

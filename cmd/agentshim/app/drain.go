package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// drainsMost bounds how often one command drains what did not fit before.
	drainsMost = 100
	// drainAckTime is how long an acknowledgement may take before what it is for is
	// left to the agent's next shim.
	drainAckTime = 2 * time.Second
)

// drain is one call of `agentshim drain`.
type drain struct {
	link

	agent, session string
	json           bool
	timeout        time.Duration

	stdout, stderr io.Writer
}

func drainCommand() *cobra.Command {
	var d drain
	c := &cobra.Command{
		Use:   "drain --agent ID",
		Short: "Print all that waits for an agent as one message of the user",
		Long: "drain is for runtimes that can only be told something between turns: it takes along all that waits\n" +
			"for the agent and prints it as one message. When nothing waits it prints nothing. What was printed\n" +
			"is acknowledged and does not come again; when printing fails, it does.",
		Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if d.agent == "" {
				return program.UsageError("--agent is missing; write --agent ID")
			}
			if d.timeout <= 0 {
				return program.UsageError("--timeout is %s; it must be longer than nothing", d.timeout)
			}
			d.stdout, d.stderr = c.OutOrStdout(), c.ErrOrStderr()
			return d.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&d.agent, "agent", "", "the agent's id")
	f.StringVar(&d.session, "session", "", "the runtime's session, for what waits for all its agents")
	f.BoolVar(&d.json, "json", false, "print the answers as JSON, one on a line")
	f.DurationVar(&d.timeout, "timeout", 60*time.Second, "how long it may take")
	d.flags(c, "none")
	return c
}

// run drains until nothing is left, or somebody else has to go on.
func (d *drain) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	d.name = "agentshim-drain"
	g, err := d.connect(ctx, d.agent, d.workspaces, d.stderr)
	if err != nil {
		return err
	}
	defer g.close()
	printed := false
	for range drainsMost {
		answer, err := g.client.Drain(ctx, d.agent, d.session)
		if err != nil {
			return err
		}
		if err := d.print(answer, printed); err != nil {
			return fmt.Errorf("the message could not be printed: %w", err)
		}
		printed = printed || answer.Content != ""
		// What was all handed over before is only to be acknowledged.
		some := answer.Content != "" || len(g.client.Noted(d.agent).Events) > 0
		if !g.done(ctx, answer.EventID, drainAckTime) {
			fmt.Fprintln(d.stderr, "agentshim: what was printed could not be acknowledged yet; the agent's next shim does it")
			return nil
		}
		if answer.Remaining == 0 || !some {
			return nil
		}
	}
	return fmt.Errorf("after %d messages there is still more; drain again", drainsMost)
}

// print prints one message, apart from the one before.
func (d *drain) print(a *schema.DrainAnswer, more bool) error {
	if d.json {
		data, err := schema.Marshal(a)
		if err == nil {
			_, err = d.stdout.Write(append(data, '\n'))
		}
		return err
	}
	if a.Content == "" {
		return nil
	}
	text := a.Content + "\n"
	if more {
		text = "\n" + text
	}
	_, err := io.WriteString(d.stdout, text)
	return err
}

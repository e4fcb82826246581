package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/channel"
	"github.com/hookfabric/hookfabric/cmd/agentshim/judge"
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

	agent, session, channel string
	json                    bool
	timeout                 time.Duration

	stdout, stderr io.Writer
}

func drainCommand() *cobra.Command {
	var d drain
	c := &cobra.Command{
		Use:   "drain --agent ID",
		Short: "Print all that waits for an agent as one message of the user",
		Long: "drain is for runtimes that can only be told something between turns: it takes along all that waits\n" +
			"for the agent and prints it as one message. When nothing waits it prints nothing. What was printed\n" +
			"is acknowledged and does not come again; when printing fails, it does.\n\n" +
			"With --channel it goes on until it is stopped, and puts one text at a time into a file in that folder, from\n" +
			"which the agent's MCP servers ('agentshim mcp --channel') append it to the result of a tool. When the file is\n" +
			"gone the text is acknowledged, and the next one comes; what nobody took waits in the fabric.",
		Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if d.agent == "" {
				return program.UsageError("--agent is missing; write --agent ID")
			}
			if d.timeout <= 0 {
				return program.UsageError("--timeout is %s; it must be longer than nothing", d.timeout)
			}
			d.stdout, d.stderr = c.OutOrStdout(), c.ErrOrStderr()
			if d.channel != "" {
				return d.write(c.Context())
			}
			return d.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&d.agent, "agent", "", "the agent's id")
	f.StringVar(&d.session, "session", "", "the runtime's session, for what waits for all its agents")
	f.StringVar(&d.channel, "channel", "", "a folder: go on until stopped, and put one text at a time into its file "+channel.FileName)
	f.BoolVar(&d.json, "json", false, "print the answers as JSON, one on a line")
	program.DurationVar(f, &d.timeout, "timeout", 60*time.Second, "how long it may take")
	d.flags(f, "none")
	return c
}

// run drains until nothing is left, or somebody else has to go on.
func (d *drain) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	judge.MakeWorkspaces(d.workspaces)
	l := d.judgeLink("agentshim-drain", d.stderr)
	g, err := l.Connect(ctx, d.agent, d.workspaces)
	if err != nil {
		return err
	}
	defer g.Close()
	printed := false
	for range drainsMost {
		answer, err := g.Client.Drain(ctx, d.agent, d.session)
		if err != nil {
			return err
		}
		if err := d.print(answer, printed); err != nil {
			return fmt.Errorf("the message could not be printed: %w", err)
		}
		printed = printed || answer.Content != ""
		// What was all handed over before is only to be acknowledged.
		some := answer.Content != "" || len(g.Client.Noted(d.agent).Events) > 0
		if !g.Done(ctx, answer.EventID, drainAckTime) {
			fmt.Fprintln(d.stderr, "agentshim: what was printed could not be acknowledged yet; the agent's next shim does it")
			return nil
		}
		if answer.Remaining == 0 || !some {
			return nil
		}
	}
	return fmt.Errorf("after %d messages there is still more; drain again", drainsMost)
}

// A lane is the queue of one agent.
type lane struct {
	*judge.Handing
	c *client.Client
}

func (l lane) DrainOne(ctx context.Context, agent, session, event string) (*schema.DrainAnswer, error) {
	return l.c.DrainOne(ctx, agent, session, event)
}

func (l lane) Hold(ctx context.Context, agent string, events ...string) error {
	return l.c.Hold(ctx, agent, events...)
}

func (l lane) AckKept(ctx context.Context, h client.Handover) error { return l.c.AckKept(ctx, h) }

// write puts texts into the folder of a channel until ctx ends.
func (d *drain) write(ctx context.Context) error {
	judge.MakeWorkspaces(d.workspaces)
	l := d.judgeLink("agentshim-drain", d.stderr)
	first, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	g, err := l.Connect(first, d.agent, d.workspaces)
	if err != nil {
		return err
	}
	defer g.Close()
	w := channel.Writer{Queue: lane{g, g.Client}, Agent: d.agent, Session: d.session, Dir: d.channel, Stderr: d.stderr}
	return w.Run(ctx)
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

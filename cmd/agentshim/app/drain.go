package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/channel"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	drainsMost   = 100             // limits how often one command drains the items that did not fit before
	drainAckTime = 2 * time.Second // limits an acknowledgement, which the agent's next shim else sends
)

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
		Short: "Print everything that waits for an agent as one user message",
		Long: "drain is for runtimes whose hooks cannot inject text. It prints everything that waits for the agent as one\n" +
			"message, acknowledges it, and ends. Run it between two turns. It prints nothing if nothing waits. If printing\n" +
			"fails, the fabric delivers the message again.\n\n" +
			"With --channel, drain delivers during a turn. It runs until you stop it, and puts one text at a time into a\n" +
			"file in that folder. 'agentshim mcp --channel' appends the text to the next tool result and removes the file.\n" +
			"drain then acknowledges the text and writes the next one. If a text is for certain tools only, drain replaces\n" +
			"it after 1s by the next text, and offers it again later. Stop drain when the agent's turn ends: 'agentshim\n" +
			"drain' without --channel then prints the rest.",
		Example: "  agentshim drain --agent scout\n  agentshim drain --agent scout --channel /tmp/scout",
		Args:    program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if d.agent == "" {
				return program.UsageError("--agent is missing; write --agent ID")
			}
			if d.timeout <= 0 {
				return program.UsageError("--timeout is %s; write a positive duration such as 30s", d.timeout)
			}
			d.resolve(c.Flags())
			d.stdout, d.stderr = c.OutOrStdout(), c.ErrOrStderr()
			if d.channel != "" {
				return d.write(c.Context())
			}
			return d.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&d.agent, "agent", "", "the agent's `ID` (required)")
	f.StringVar(&d.session, "session", "", "also take the items that wait for all agents of this session; `ID` is the runtime's session id; default: none")
	f.StringVar(&d.channel, "channel", "", "run until stopped, and put one text at a time into `DIR`/"+channel.FileName)
	f.BoolVar(&d.json, "json", false, "print each answer as one line of JSON; default: text")
	program.DurationVar(f, &d.timeout, "timeout", 60*time.Second, "limit for the whole command; such as 30s; with --channel: limit for the first connection only")
	d.flags(f, "none")
	return c
}

// run drains until the queue is empty, or leaves the rest to the agent's next process.
func (d *drain) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	g, err := d.connect(ctx)
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
			return fmt.Errorf("printing the message: %w; the fabric delivers it again", err)
		}
		printed = printed || answer.Content != ""
		// Items that were all handed over before need only an acknowledgement.
		some := answer.Content != "" || len(g.Client.Noted(d.agent).Events) > 0
		if !g.Done(ctx, answer.EventID, drainAckTime) {
			fmt.Fprintln(d.stderr, "agentshim: the printed items are not acknowledged yet; the agent's next agentshim process acknowledges them")
			return nil
		}
		if answer.Remaining == 0 || !some {
			return nil
		}
	}
	return fmt.Errorf("printed %d messages, and more items wait; run the command again", drainsMost)
}

func (d *drain) connect(ctx context.Context) (*decide.Delivery, error) {
	log, err := program.Logger(program.Messages(d.stderr))
	if err != nil {
		return nil, err
	}
	l := d.judgeLink("agentshim-drain", d.stderr, log)
	return l.Connect(ctx, d.agent, d.workspaces)
}

// A lane is the queue of one agent.
type lane struct {
	*decide.Delivery
	*client.Client
}

// write writes texts into the folder of a channel until ctx ends.
func (d *drain) write(ctx context.Context) error {
	first, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	g, err := d.connect(first)
	if err != nil {
		return err
	}
	defer g.Close()
	w := channel.Writer{Queue: lane{g, g.Client}, Agent: d.agent, Session: d.session, Dir: d.channel, Stderr: program.Messages(d.stderr)}
	return w.Run(ctx)
}

// print prints one message, separated from the one before.
func (d *drain) print(a *schema.DrainAnswer, more bool) error {
	if d.json {
		return printJSON(d.stdout, a)
	}
	if a.Content == "" {
		return nil
	}
	text := schema.VisibleText(a.Content) + "\n"
	if more {
		text = "\n" + text
	}
	_, err := io.WriteString(d.stdout, text)
	return err
}

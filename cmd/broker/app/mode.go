package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// settingMode is one call of `broker mode`.
type settingMode struct {
	remote
	agent               string
	voteOnly, midStream bool
	asJSON              bool
}

// modeCommand is `broker mode`.
func modeCommand() *cobra.Command {
	var k settingMode
	c := &cobra.Command{
		Use: "mode --agent A [--vote-only | --mid-stream]", Short: "Show or change how other agents' answers reach an agent",
		Long: "mode sets how an agent receives the answers of other agents: mid-stream, while its turn continues, or vote-only, by a\n" +
			"restart of its turn. An agent that votes needs the restart because its voting tools are fixed when its turn begins.\n" +
			"The mode applies in all sessions of the agent until it is changed. Without a mode, the command shows the current one.",
		Example: "  broker mode --agent scout --vote-only\n" +
			"  broker mode --agent scout",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return k.run(c) },
	}
	k.remote.flags(c)
	k.timeoutFlag(c)
	f := c.Flags()
	f.StringVar(&k.agent, "agent", "", "agent whose mode the command shows or changes")
	f.BoolVar(&k.voteOnly, "vote-only", false, "deliver answers by a restart of the agent's turn")
	f.BoolVar(&k.midStream, "mid-stream", false, "deliver answers while the agent's turn continues (the mode of an agent if none was set)")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	return c
}

func (k *settingMode) run(c *cobra.Command) error {
	var req schema.ModeRequest
	switch {
	case k.agent == "":
		return program.UsageError("--agent is missing; name the agent")
	case k.voteOnly && k.midStream:
		return program.UsageError("--vote-only and --mid-stream exclude each other; write one of them")
	case k.voteOnly || k.midStream:
		req.VoteOnly = &k.voteOnly
	}
	var is schema.ModeAnswer
	if err := k.ask(c.Context(), schema.VerbMode, k.agent, &req, &is); err != nil {
		return err
	}
	if k.asJSON {
		return printJSON(c.OutOrStdout(), is)
	}
	mode := "mid-stream: it reads other agents' answers while its turn goes on"
	if is.VoteOnly {
		mode = "vote-only: it receives other agents' answers when it restarts"
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "agent %s is %s\n", word(k.agent), mode)
	return err
}

// checkpointing is one call of `broker checkpoint`.
type checkpointing struct {
	remote
	agent string
}

// checkpointCommand is `broker checkpoint`.
func checkpointCommand() *cobra.Command {
	var k checkpointing
	c := &cobra.Command{
		Use: "checkpoint --agent A", Short: "Release the answers that the broker holds back until an agent restarts",
		Long: "checkpoint releases the answers of other agents that the broker holds back until an agent restarts. The broker holds\n" +
			"them back if the hook mid_stream_injection has the option defer_peer_updates_until_restart. A SessionStart event and\n" +
			"'broker round start' also release them; checkpoint is for agents without either. The agent then receives the\n" +
			"answers at its next event.",
		Example: "  broker checkpoint --agent scout",
		Args:    program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return k.run(c) },
	}
	k.remote.flags(c)
	k.timeoutFlag(c)
	c.Flags().StringVar(&k.agent, "agent", "", "agent that restarts")
	return c
}

func (k *checkpointing) run(c *cobra.Command) error {
	if k.agent == "" {
		return program.UsageError("--agent is missing; name the agent")
	}
	if err := k.ask(c.Context(), schema.VerbCheckpoint, k.agent, struct{}{}, new(struct{})); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "agent %s restarts: the broker releases the answers that it held back\n", word(k.agent))
	return err
}

package app

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// rounding is one call of a subcommand of `broker round`.
type rounding struct {
	remote
	agent                      string
	initial, subsequent, grace time.Duration
	number                     int
	asJSON                     bool
}

// roundCommand is `broker round`.
func roundCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "round", Short: "Start, show or end an agent's round and its time limits",
		Long: "round manages an agent's round, which is its current attempt. At the soft limit the agent receives one warning. After\n" +
			"the grace period that follows, the broker denies every tool except those that end the round.",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		roundAction(schema.RoundStart, "Start an agent's next round, with new limits and counters"),
		roundAction(schema.RoundShow, "Show an agent's round and the time that is left"),
		roundAction(schema.RoundWrapUp, "Send an agent the warning that its round ends, now"))
	return c
}

func roundAction(action, short string) *cobra.Command {
	var k rounding
	c := &cobra.Command{
		Use: action + " --agent A", Short: short, Args: program.NoArgs,
		Example: "  broker round " + action + " --agent scout",
		RunE:    func(c *cobra.Command, _ []string) error { return k.run(c, action) },
	}
	k.remote.flags(c)
	k.timeoutFlag(c)
	f := c.Flags()
	f.StringVar(&k.agent, "agent", "", "agent of the round")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	if action == schema.RoundStart {
		program.DurationVar(f, &k.initial, "initial", 0, "soft limit of round 0 (default: as in the round before, else no limit)")
		program.DurationVar(f, &k.subsequent, "subsequent", 0, "soft limit of later rounds (default: as in the round before, else no limit)")
		f.IntVar(&k.number, "number", 0, "number of the round, from 0 (default: the last number plus one)")
	}
	if action != schema.RoundShow {
		program.DurationVar(f, &k.grace, "grace", 0, "time between the warning and the hard limit (default: as in the round before, else "+rough(schema.DefaultGrace)+")")
	}
	return c
}

// request returns the request, with only the flags that are set.
func (k *rounding) request(c *cobra.Command, action string) (*schema.RoundRequest, error) {
	if k.agent == "" {
		return nil, program.UsageError("--agent is missing; name the agent of the round")
	}
	req := &schema.RoundRequest{Action: action}
	for _, limit := range []struct {
		flag string
		is   time.Duration
		to   **schema.Duration
	}{{"initial", k.initial, &req.Initial}, {"subsequent", k.subsequent, &req.Subsequent}, {"grace", k.grace, &req.Grace}} {
		if !c.Flags().Changed(limit.flag) {
			continue
		}
		if limit.is < 0 {
			return nil, program.UsageError("--%s is %s; use a duration of 0 or more", limit.flag, limit.is)
		}
		d := schema.Duration(limit.is)
		*limit.to = &d
	}
	if c.Flags().Changed("number") {
		if k.number < 0 {
			return nil, program.UsageError("--number is %d; rounds are numbered from 0", k.number)
		}
		req.Number = &k.number
	}
	return req, nil
}

func (k *rounding) run(c *cobra.Command, action string) error {
	req, err := k.request(c, action)
	if err != nil {
		return err
	}
	var round schema.Round
	if err := k.ask(c.Context(), schema.VerbRound, k.agent, req, &round); err != nil {
		return err
	}
	if k.asJSON {
		return printJSON(c.OutOrStdout(), round)
	}
	return printRound(c.OutOrStdout(), action, k.agent, &round)
}

// printRound prints the state of a round in one sentence.
func printRound(w io.Writer, action, agent string, r *schema.Round) error {
	what := fmt.Sprintf("round %d of agent %s: ", r.Number, word(agent))
	switch {
	case action == schema.RoundStart:
		what = fmt.Sprintf("round %d of agent %s begins: ", r.Number, word(agent))
	case action == schema.RoundWrapUp && !r.Warned:
		what = fmt.Sprintf("agent %s will be warned that its round ends: round %d, ", word(agent), r.Number)
	}
	return printLine(w, "%s", what+strings.Join(standing(action, r), ", "))
}

// standing returns the state of a round as parts of a sentence.
func standing(action string, r *schema.Round) (parts []string) {
	limit := "without a soft limit"
	if d := r.Limit(); d != nil {
		limit = "soft limit " + rough(*d)
	}
	if action != schema.RoundStart {
		limit = rough(r.Elapsed) + " old, " + limit
	}
	parts = append(parts, limit, "grace "+rough(r.Grace))
	switch left := r.Grace - r.Since; {
	case r.Warned && left > 0:
		parts = append(parts, fmt.Sprintf("warned %s ago, %s left", rough(r.Since), rough(left)))
	case r.Warned:
		parts = append(parts, fmt.Sprintf("warned %s ago, only terminal tools pass", rough(r.Since)))
	case r.WrapUp && action == schema.RoundShow:
		parts = append(parts, "the warning waits for delivery")
	}
	if r.Denials > 0 {
		parts = append(parts, fmt.Sprintf("calls denied in a row: %d", r.Denials))
	}
	if r.Terminate {
		parts = append(parts, "the run must end")
	}
	return parts
}

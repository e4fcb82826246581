package app

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// maxListed is how many items a broker lists in one answer.
const maxListed = 10_000

// pendingCommand is `broker pending`.
func pendingCommand() *cobra.Command {
	var r remote
	var asJSON bool
	var agent string
	var req schema.PendingRequest
	c := &cobra.Command{
		Use: "pending", Short: "List the messages that wait for agents", Args: program.NoArgs,
		Long: "pending lists the messages in the queue, the oldest first: state, age, source, receiver, length in bytes, expiry and\n" +
			"key. The state is queued, or leased after a message was delivered and until it is acknowledged. Contents are not shown.",
		Example: "  broker pending --agent scout",
		RunE: func(c *cobra.Command, _ []string) error {
			if req.Limit < 0 || req.Limit > maxListed {
				return program.UsageError("--limit is %d; use a number of lines from 0 to %d", req.Limit, maxListed)
			}
			var answer schema.PendingAnswer
			if err := r.ask(c.Context(), schema.VerbPending, agent, req, &answer); err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), answer)
			}
			return printPending(c.OutOrStdout(), agent, &answer)
		},
	}
	r.flags(c)
	r.timeoutFlag(c)
	c.Flags().StringVar(&agent, "agent", "", "list only messages for this agent")
	c.Flags().IntVar(&req.Limit, "limit", 0, "list at most this many; 0: 1000")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printPending(w io.Writer, agent string, answer *schema.PendingAnswer) error {
	if answer.Total == 0 && len(answer.Items) == 0 {
		what, whom := "no messages wait", "A"
		if agent != "" {
			what, whom = "no messages wait for agent "+word(agent), word(agent)
		}
		_, err := fmt.Fprintf(w, "%s; send one with 'broker inject --agent %s TEXT'\n", what, whom)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "STATE\tAGE\tSOURCE\tFOR\tBYTES\tEXPIRES\tKEY")
	sources := map[string]int{}
	for i := range answer.Items {
		it := &answer.Items[i]
		sources[it.Source]++
		row(t, it.State, rough(it.Age), word(it.Source), recipients(it), it.Length, expires(it), it.Key)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", total(answer, sources))
	return err
}

// total returns the last line: the number of items, or how many are not listed.
func total(answer *schema.PendingAnswer, sources map[string]int) string {
	if listed := len(answer.Items); listed < answer.Total {
		return fmt.Sprintf("%d wait; the first %d are listed, list more with --limit %d", answer.Total, listed, min(answer.Total, maxListed))
	}
	verb := "wait"
	if answer.Total == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%d %s: %s", answer.Total, verb, bySource(sources))
}

// bySource lists the number of waiting items of each source.
func bySource(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, source := range slices.Sorted(maps.Keys(counts)) {
		if counts[source] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", word(source), counts[source]))
		}
	}
	return strings.Join(parts, ", ")
}

// recipients returns the receivers of an item, and how many have received it.
func recipients(it *schema.PendingItem) string {
	whom := forWhom(it.Scope)
	if it.Delivered > 0 {
		whom += fmt.Sprintf(" (%d have it)", it.Delivered)
	}
	return whom
}

func expires(it *schema.PendingItem) string {
	if it.ExpiresIn == 0 {
		return "never"
	}
	return "in " + rough(it.ExpiresIn)
}

// rough returns a duration with at most two units.
func rough(d schema.Duration) string {
	std := d.Std()
	switch {
	case std < time.Second:
		return "0s"
	case std < time.Hour:
		std = std.Truncate(time.Second)
	default:
		std = std.Truncate(time.Minute)
	}
	text := std.String()
	if days := std / (24 * time.Hour); days > 0 {
		text = fmt.Sprintf("%dd%dh", days, std/time.Hour%24)
	}
	for _, nothing := range []struct{ end, cut string }{{"m0s", "0s"}, {"h0m", "0m"}, {"d0h", "0h"}} {
		if strings.HasSuffix(text, nothing.end) {
			text = strings.TrimSuffix(text, nothing.cut)
		}
	}
	return text
}

// word returns a name on one line, quoted if it has spaces or control characters.
func word(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s || strings.Contains(s, " ") {
		return q
	}
	return s
}

// withdrawCommand is `broker withdraw`.
func withdrawCommand() *cobra.Command {
	var r remote
	var asJSON bool
	c := &cobra.Command{
		Use: "withdraw KEY...", Short: "Remove waiting messages, by the keys that 'broker pending' shows",
		Long:    "withdraw removes messages that no agent has read yet. It exits with 1 if a message was already delivered.",
		Example: "  broker withdraw a-scout.operator.17",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return program.UsageError("no key is named; use keys that 'broker pending' shows")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var failed int
			for _, key := range args {
				if err := r.withdraw(c, key, asJSON); err != nil {
					if len(args) == 1 {
						return err
					}
					failed++
					fmt.Fprintf(c.ErrOrStderr(), "%s: %v\n", c.Root().Name(), err)
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d were not withdrawn", failed, len(args))
			}
			return nil
		},
	}
	r.flags(c)
	r.timeoutFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// withdraw removes one item. A delivered item is an error.
func (r *remote) withdraw(c *cobra.Command, key string, asJSON bool) error {
	var answer schema.WithdrawAnswer
	if err := r.ask(c.Context(), schema.VerbWithdraw, "", schema.WithdrawRequest{Key: key}, &answer); err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(c.OutOrStdout(), answer); err != nil {
			return err
		}
	}
	switch answer.State {
	case schema.Delivered:
		return fmt.Errorf("%s was already delivered and cannot be withdrawn", key)
	case schema.Leased:
		return fmt.Errorf("%s is being delivered; if the agent's side does not acknowledge it within 30s, you can withdraw it then", key)
	case schema.Withdrawn, schema.Expired:
	default:
		return errors.New(key + " is " + string(answer.State) + "; run the command again")
	}
	if asJSON {
		return nil
	}
	text := fmt.Sprintf("%s is %s", key, answer.State)
	if answer.Delivered > 0 {
		text += fmt.Sprintf("; %d agents received it before", answer.Delivered)
	}
	return printLine(c.OutOrStdout(), "%s", text)
}

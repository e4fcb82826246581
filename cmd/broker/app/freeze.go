package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// freezeTime is how long all brokers may take to apply a freeze: longer than the lease of one
	// that has just died.
	freezeTime = 20 * time.Second
	// freezeMargin is added to it for the answer.
	freezeMargin = 2 * time.Second
	// insistAfter is how long a broker may take to answer before the request is sent again, and
	// insistences bounds how often it is sent. Each time NATS chooses a broker at random: if one
	// of two hangs, all copies reach it in one of 65,536 cases.
	insistAfter = 200 * time.Millisecond
	insistences = 16
)

// freezing is one call of `broker freeze` or `broker thaw`.
type freezing struct {
	remote
	verb      string
	agent     string
	all, list bool
	within    time.Duration
	began     time.Time // of the first request
	req       schema.FreezeRequest
	asJSON    bool
}

// freezeCommand is `broker freeze`.
func freezeCommand() *cobra.Command {
	k := freezing{verb: schema.VerbFreeze}
	c := &cobra.Command{
		Use: "freeze (--agent G | --all | --list)", Short: "Deny every tool call of some agents, or of all, until 'broker thaw'",
		Long: "freeze makes every broker deny all tool calls of the agents within a second, regardless of the hooks, including calls\n" +
			"that are under way. Tools that only end a round are exempt: vote and new_answer, or the terminal_tools of the hook\n" +
			"round_timeout_pre. Agents can still think and end their turns. The freeze outlives restarts, until 'broker thaw'.\n" +
			"A shim that cannot reach a broker applies the last freeze that it received.\n" +
			"\n" +
			"The command returns when every broker applies the freeze, and prints how long that took. It exits with 1 if a broker\n" +
			"does not apply it within --timeout.",
		Example: "  broker freeze --all --reason 'wrong deployment, ask Ops'\n" +
			"  broker freeze --agent 'scout-*'\n" +
			"  broker freeze --list",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return k.run(c) },
	}
	k.flags(c)
	c.Flags().BoolVar(&k.list, "list", false, "list the frozen agents, and change nothing")
	program.Apart(c, "agent", "all", "list")
	return c
}

// thawCommand is `broker thaw`.
func thawCommand() *cobra.Command {
	k := freezing{verb: schema.VerbThaw}
	c := &cobra.Command{
		Use: "thaw (--agent G | --all)", Short: "End a freeze: the hooks decide about tool calls again",
		Long: "thaw ends the freeze of exactly this pattern, as 'broker freeze --list' shows it. --all ends the freeze that\n" +
			"'broker freeze --all' began; freezes with a pattern stay.",
		Example: "  broker thaw --agent 'scout-*'\n" +
			"  broker thaw --all",
		Args: program.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return k.run(c) },
	}
	k.flags(c)
	program.Apart(c, "agent", "all")
	return c
}

func (k *freezing) flags(c *cobra.Command) {
	k.remote.flags(c)
	f := c.Flags()
	f.StringVar(&k.agent, "agent", "", "agents, as a glob; separate alternatives with |")
	f.BoolVar(&k.all, "all", false, "apply it to all agents")
	f.StringVar(&k.req.Reason, "reason", "", "reason, which agents read and the record keeps")
	f.StringVar(&k.req.By, "by", "", "name of the operator; recorded, not verified (default user@host)")
	program.DurationVar(f, &k.within, "timeout", freezeTime, "wait at most this long until every broker applies the change")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
}

// check rejects flags that cannot work, and fills the request.
func (k *freezing) check() error {
	switch {
	case k.within <= 0:
		return program.UsageError("--timeout is %s; use a duration above zero", k.within)
	case k.list:
		return nil
	case k.all:
		k.req.Agents = schema.AllAgents
	case strings.TrimSpace(k.agent) == "":
		return program.UsageError("no agents are named; add --agent GLOB or --all")
	default:
		k.req.Agents = strings.TrimSpace(k.agent)
	}
	k.req.Within = schema.Duration(k.within)
	if k.req.By == "" {
		k.req.By = operatorName()
	}
	return nil
}

// operatorName returns the user and host of this process. It is not verified.
func operatorName() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	who := name + "@" + host
	return strings.ToValidUTF8(who[:min(len(who), schema.MaxFreezeBy)], "")
}

func (k *freezing) run(c *cobra.Command) error {
	if err := k.check(); err != nil {
		return err
	}
	warnOfAgents(c.ErrOrStderr(), k.agent)
	k.wait = k.within + freezeMargin
	var answer schema.FreezeAnswer
	if err := k.insist(c.Context(), &answer); err != nil {
		return err
	}
	var err error
	switch {
	case k.asJSON:
		err = printJSON(c.OutOrStdout(), answer)
	case k.list:
		return printFreezes(c.OutOrStdout(), answer.Frozen)
	default:
		err = k.print(c.OutOrStdout(), &answer)
	}
	if k.list || err != nil {
		return err
	}
	return behind(&answer, k.within)
}

// insist reads the freezes and requests the change on the condition that they are still the same.
// A broker that hangs may apply a request long after another one did, and the condition prevents
// that. If another operator was faster, it reads them again.
func (k *freezing) insist(ctx context.Context, answer *schema.FreezeAnswer) error {
	ctx, cancel := k.bounded(ctx)
	defer cancel()
	nc, err := k.connect(ctx, k.verb)
	if err != nil {
		return err
	}
	defer nc.Close()
	k.began = time.Now()
	var first schema.FreezeAnswer
	for i := 0; ; i++ {
		var now schema.FreezeAnswer
		err := k.repeat(ctx, nc, about{schema.VerbFreeze, ""}, schema.FreezeRequest{}, &now)
		switch {
		case k.list:
			*answer = now
			return err
		case err != nil:
			return fmt.Errorf("%w; nothing was changed", err)
		case i == 0:
			first = now
		}
		if k.verb == schema.VerbThaw && !slices.Equal(named(first.Frozen, k.req.Agents), named(now.Frozen, k.req.Agents)) {
			return fmt.Errorf("another operator changed the freeze of %q at the same time; look with 'broker freeze --list', and run the command again if it must be thawed", k.req.Agents)
		}
		req := k.req
		req.Version = &now.Version
		err = k.repeat(ctx, nc, about{k.verb, ""}, req, answer)
		if moved, ok := errors.AsType[*schema.ControlError](err); !ok || moved.Code != schema.CodeConflict {
			return k.unknown(err)
		}
		if kv.Again(ctx, i) != nil {
			return err
		}
	}
}

// named returns the freeze with exactly this pattern, if there is one.
func named(all []schema.Freeze, agents string) (these []schema.Freeze) {
	for _, z := range all {
		if z.Agents == agents {
			these = append(these, z)
		}
	}
	return these
}

// repeat sends a request, and sends it again while no broker answers: a hanging broker may have
// received it, and another one gets the next copy. Freezing twice is harmless. If a copy finds
// nothing to thaw, another copy did it. If one broker cannot do it now, another one may.
func (k *freezing) repeat(ctx context.Context, nc *nats.Conn, what about, req schema.FreezeRequest, answer *schema.FreezeAnswer) error {
	type result struct {
		answer schema.FreezeAnswer
		err    error
	}
	results := make(chan result, insistences)
	again := time.NewTicker(insistAfter)
	defer again.Stop()
	for asked, pending := 0, 0; ; {
		spent := time.Since(k.began)
		if asked == 0 || asked < insistences && spent < k.within {
			if spent >= freezeMargin/2 && req.Within > 0 {
				req.Within = schema.Duration(max(k.within-spent, insistAfter))
			}
			asked, pending = asked+1, pending+1
			go func(req schema.FreezeRequest) {
				r := result{}
				r.err = k.askOn(ctx, nc, what, &req, &r.answer)
				results <- r
			}(req)
		}
		select {
		case r := <-results:
			refused, ok := errors.AsType[*schema.ControlError](r.err)
			others := ok && (refused.Code == schema.CodeNotFound || refused.Code == schema.CodeUnavailable)
			if pending--; pending == 0 || !others {
				*answer = r.answer
				return r.err
			}
		case <-again.C:
		}
	}
}

// unknown adds to an error whether the change may have taken effect.
func (k *freezing) unknown(err error) error {
	n, unanswered := errors.AsType[*noAnswer](err)
	switch {
	case unanswered && n.received() || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w; the change may have been stored: run the command again, which is safe, or look with 'broker freeze --list'", err)
	case unanswered:
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return err
}

// print prints the result.
func (k *freezing) print(w io.Writer, a *schema.FreezeAnswer) error {
	done := "frozen: "
	switch {
	case k.verb == schema.VerbThaw:
		done = "thawed: "
	case !a.Changed:
		done = "already frozen, nothing changed: "
	}
	_ = printLine(w, "%s%s", done, describe(a.Freeze))
	if k.verb == schema.VerbThaw {
		for i := range a.Frozen {
			_ = printLine(w, "still frozen: %s", describe(&a.Frozen[i]))
		}
	}
	if len(a.Missing) > 0 || a.Trouble != "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s it, after %s\n", brokersApply(len(a.Confirmed)), a.Took.Std().Round(time.Millisecond))
	return err
}

func brokersApply(n int) string {
	if n == 1 {
		return "1 broker applies"
	}
	return fmt.Sprintf("all %d brokers apply", n)
}

// describe returns a freeze as text. Its author is as the client gave it, not verified.
func describe(z *schema.Freeze) string {
	text := z.Whose() + ", since " + z.Since.UTC().Format(time.RFC3339)
	if z.By != "" {
		text += ", by " + word(z.By) + " (not verified)"
	}
	if z.Reason != "" {
		text += ": " + z.Reason
	}
	return text
}

// behind returns an error if a broker does not apply the change.
func behind(a *schema.FreezeAnswer, within time.Duration) error {
	switch {
	case a.Trouble != "":
		return fmt.Errorf("the change is stored, but the brokers that must apply it cannot be listed (%d apply it): %s", len(a.Confirmed), a.Trouble)
	case len(a.Missing) > 0:
		return fmt.Errorf("the change is stored, and %d of %d brokers apply it; after %s these have not confirmed it: %s. Run the command again to wait for them, or stop them",
			len(a.Confirmed), len(a.Confirmed)+len(a.Missing), within, strings.Join(a.Missing, ", "))
	}
	return nil
}

// printFreezes lists the freezes.
func printFreezes(w io.Writer, all []schema.Freeze) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no agents are frozen")
		return err
	}
	for i := range all {
		if err := printLine(w, "%s", describe(&all[i])); err != nil {
			return err
		}
	}
	return nil
}

// printFrozen lists the freezes in a status.
func printFrozen(w io.Writer, all []schema.Freeze) {
	for i := range all {
		_ = printLine(w, "FROZEN   %s", describe(&all[i]))
	}
}

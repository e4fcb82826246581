package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// injection is one call of `broker inject`.
type injection struct {
	remote
	agent                string
	strategy             string
	ttl                  time.Duration
	subagent, background string
	req                  schema.InjectRequest
	// named: the key was made here, so that the request may be repeated.
	named  bool
	asJSON bool
}

// injectCommand says something to agents.
func injectCommand() *cobra.Command {
	var k injection
	c := &cobra.Command{
		Use: "inject (--agent A | --session S | --all) TEXT|-", Short: "Say something to an agent, to all of a session, or to all",
		Long: "inject puts a text into the queue of an agent, of all agents of a session, or of all agents. It waits\n" +
			"there until the agent can read it: usually with the result of its next tool call. When inject says that\n" +
			"it is queued, it is on disk. - is stdin; a text of any length will do.\n\n" +
			"  broker inject --agent agent1 'The tests moved to spec/.'\n" +
			"  broker inject --all --source reminder --ttl 1h --matcher 'Bash|run_shell_command' 'The proxy is down.'\n" +
			"  broker inject --agent agent1 --producer ci --number 17 - <report.txt\n" +
			`  broker inject --agent agent1 --subagent '{"id":"s1","status":"completed","answer":"42"}'` + "\n\n" +
			"With --key, or with --producer and --number, it is accepted once, however often it is said.\n" +
			"'broker pending' shows what waits, 'broker withdraw' takes it back.",
		Args: func(_ *cobra.Command, args []string) error { return aText(args) },
		RunE: func(c *cobra.Command, args []string) error {
			if err := k.check(c, args); err != nil {
				return err
			}
			return k.run(c, args)
		},
	}
	k.flags(c)
	return c
}

func (k *injection) flags(c *cobra.Command) {
	k.remote.flags(c)
	k.patient(c)
	f := c.Flags()
	f.StringVar(&k.agent, "agent", "", "for this agent")
	f.StringVar(&k.req.Session, "session", "", "for all agents of this session")
	f.BoolVar(&k.req.All, "all", false, "for all agents")
	f.StringVar(&k.req.Source, "source", "", "who says it: human, peer, reminder, … or a word of your own (default human)")
	f.StringVar(&k.strategy, "strategy", "", "tool_result: beside a tool's result; user_message: as a user would say it (default tool_result)")
	f.StringVar(&k.req.Matcher, "matcher", "", "globs of tools, alternatives with |: only with the result of one of these")
	program.DurationVar(f, &k.ttl, "ttl", 0, "how long it may wait; 0: for ever, and 24h if it is for several agents")
	f.StringVar(&k.req.Key, "key", "", "what it is called, so that it is accepted once")
	f.StringVar(&k.req.Producer, "producer", "", "who counts in --number, or names in --key (default operator)")
	f.Uint64Var(&k.req.Number, "number", 0, "the producer's count, from 1, so that it is accepted once")
	f.BoolVar(&k.req.LateJoiners, "late-joiners", false, "also for agents that are first seen later")
	f.StringVar(&k.subagent, "subagent", "", "instead of a text: a subagent's result, as JSON")
	f.StringVar(&k.background, "background", "", "instead of a text: a background tool's result, as JSON")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	program.Apart(c, "agent", "session", "all")
	program.Apart(c, "subagent", "background")
	program.Apart(c, "key", "number")
	program.Completes(c, "strategy", string(schema.ToolResult), string(schema.UserMessage))
	program.Completes(c, "source", schema.SourceHuman, schema.SourcePeer, schema.SourceSubagent, schema.SourceBackground, schema.SourceReminder)
}

// check refuses a command line that can not work, and reads the flags into the request.
func (k *injection) check(c *cobra.Command, args []string) error {
	structured := k.subagent != "" || k.background != ""
	switch {
	case k.agent == "" && k.req.Session == "" && !k.req.All:
		return program.UsageError("it is not said for whom; write --agent A, --session S or --all")
	case len(args) == 0 && !structured:
		return program.UsageError("the text is missing; write it in quotes, or - for stdin")
	case len(args) > 0 && structured:
		return program.UsageError("there is a text and a result as JSON; write one of them")
	case k.req.Number != 0 && k.req.Producer == "":
		return program.UsageError("--number is not said whose it is; write --producer too: numbers count what one producer says")
	case c.Flags().Changed("number") && k.req.Number == 0:
		return program.UsageError("--number is 0; count from 1")
	case k.ttl < 0:
		return program.UsageError("--ttl is %s; it must be longer than nothing", k.ttl)
	case k.req.LateJoiners && k.agent != "":
		return program.UsageError("--late-joiners says nothing with --agent, who gets it whenever it is seen; write it with --session or --all")
	}
	k.req.TTL = schema.Duration(k.ttl)
	var err error
	if k.req.Strategy, err = strategy(k.strategy); err != nil {
		return err
	}
	return k.structured()
}

// strategy reads a strategy; empty is the brokers' default.
func strategy(word string) (schema.Strategy, error) {
	s := schema.Strategy(word)
	if word == "" || s.Known() {
		return s, nil
	}
	if near := hooksyaml.Nearest(word, string(schema.ToolResult), string(schema.UserMessage)); near != "" {
		return "", program.UsageError("unknown strategy %q; did you mean %s?", word, near)
	}
	return "", program.UsageError("unknown strategy %q; write %s or %s", word, schema.ToolResult, schema.UserMessage)
}

// structured reads what is given instead of a text.
func (k *injection) structured() error {
	if k.subagent != "" {
		k.req.Subagent = &schema.SubagentResult{}
		if err := schema.Unmarshal([]byte(k.subagent), k.req.Subagent); err != nil {
			return program.UsageError(`--subagent can not be read: %w; write an object such as {"id":"s1","status":"completed","answer":"…"}`, err)
		}
	}
	if k.background != "" {
		k.req.Background = &schema.BackgroundResult{}
		if err := schema.Unmarshal([]byte(k.background), k.req.Background); err != nil {
			return program.UsageError(`--background can not be read: %w; write an object such as {"id":"j1","tool":"build","status":"completed","result":"…"}`, err)
		}
	}
	return nil
}

func (k *injection) run(c *cobra.Command, args []string) error {
	text := ""
	if len(args) > 0 {
		var err error
		if text, err = textOf(args, c.InOrStdin()); err != nil {
			return err
		}
	}
	receipt, err := k.send(c.Context(), text)
	if err != nil {
		return k.inDoubt(err)
	}
	if k.asJSON {
		return printJSON(c.OutOrStdout(), receipt)
	}
	scope := schema.Scope{Agent: k.agent, Session: k.req.Session}
	return printReceipt(c.OutOrStdout(), "queued for "+forWhom(scope), receipt)
}

// send makes the request, after what is too long for it was stored.
func (k *injection) send(ctx context.Context, text string) (*schema.Receipt, error) {
	nc, err := k.connect(ctx, schema.VerbInject)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if text != "" {
		if k.req.Content, k.req.Object, err = k.fit(ctx, nc, text); err != nil {
			return nil, err
		}
	}
	if k.named = k.req.Key == "" && k.req.Number == 0; k.named {
		k.req.Key = uuid.NewString()
	}
	ctx, cancel := k.bounded(ctx)
	defer cancel()
	receipt := &schema.Receipt{}
	err = k.askOn(ctx, nc, about{schema.VerbInject, k.agent}, &k.req, receipt)
	receipt.Duplicate = receipt.Duplicate && !k.named // by one of the repeats
	return receipt, err
}

// inDoubt says what is not known when the request was not answered.
func (k *injection) inDoubt(err error) error {
	lost, ok := errors.AsType[*noAnswer](err)
	switch {
	case !ok || !lost.received():
		return err
	case k.named:
		return fmt.Errorf("%w; it is not known whether it was accepted: say it again with --key %s, and it is accepted once", err, k.req.Key)
	}
	return fmt.Errorf("%w; it is not known whether it was accepted: say it again as it was, and it is accepted once", err)
}

// printReceipt says what became of an item, of which done says what was done now.
func printReceipt(w io.Writer, done string, r *schema.Receipt) error {
	place := ""
	if r.Sequence != 0 {
		place = fmt.Sprintf(", sequence %d", r.Sequence)
	}
	line := fmt.Sprintf("%s: key %s%s", done, r.Key, place)
	if r.Duplicate {
		line = fmt.Sprintf("accepted before, and nothing was stored now: key %s%s, %s", r.Key, place, r.State)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// forWhom says whom a scope means.
func forWhom(s schema.Scope) string {
	switch {
	case s.Agent != "":
		return "agent " + word(s.Agent)
	case s.Session != "":
		return "session " + word(s.Session)
	}
	return "all agents"
}

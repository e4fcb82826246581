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
	// named: the command made the key, so the request may be repeated.
	named  bool
	asJSON bool
}

// injectCommand is `broker inject`.
func injectCommand() *cobra.Command {
	var k injection
	c := &cobra.Command{
		Use: "inject (--agent A | --session S | --all) TEXT|-", Short: "Send a message to one agent, to the agents of a session, or to all agents",
		Long: "inject queues a message for an agent, for the agents of a session, or for all agents. An agent receives it usually\n" +
			"with the result of its next tool call. When the command reports that the message is queued, it is on disk. The text -\n" +
			"reads stdin; it may be of any length up to 64 MiB.\n" +
			"\n" +
			"With --key, or with --producer and --number, the broker accepts the message once, however often the command runs.\n" +
			"'broker pending' lists waiting messages, 'broker withdraw' removes them.",
		Example: "  broker inject --agent agent1 'The tests moved to spec/.'\n" +
			"  broker inject --all --source reminder --ttl 1h --matcher 'Bash|run_shell_command' 'The proxy is down.'\n" +
			"  broker inject --agent agent1 --producer ci --number 17 - <report.txt\n" +
			"  broker inject --agent agent1 --subagent '{\"id\":\"s1\",\"status\":\"completed\",\"answer\":\"42\"}'",
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
	k.timeoutFlag(c)
	f := c.Flags()
	f.StringVar(&k.agent, "agent", "", "send to this agent")
	f.StringVar(&k.req.Session, "session", "", "send to all agents of this session")
	f.BoolVar(&k.req.All, "all", false, "send to all agents")
	f.StringVar(&k.req.Source, "source", "", "kind of author: human, peer, reminder, … or a word of your own (default human)")
	f.StringVar(&k.strategy, "strategy", "", "how the agent receives it: tool_result, with a tool's result; user_message, as a message of the user (default tool_result)")
	f.StringVar(&k.req.Matcher, "matcher", "", "deliver it only with the result of one of these tools: globs, separated by | (default: any tool)")
	program.DurationVar(f, &k.ttl, "ttl", 0, "drop it if it is not delivered in time; 0: no limit for one agent, 24h for several")
	f.StringVar(&k.req.Key, "key", "", "key of the message; the broker accepts each key of a producer once")
	f.StringVar(&k.req.Producer, "producer", "", "name of the program that chooses --key or --number (default operator)")
	f.Uint64Var(&k.req.Number, "number", 0, "number of the message among the producer's, from 1; the broker accepts each number once")
	f.BoolVar(&k.req.LateJoiners, "late-joiners", false, "with --session or --all: also deliver it to agents that appear later")
	f.StringVar(&k.subagent, "subagent", "", "send a subagent's result instead of a text, as JSON")
	f.StringVar(&k.background, "background", "", "send a background tool's result instead of a text, as JSON")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	program.Apart(c, "agent", "session", "all")
	program.Apart(c, "subagent", "background")
	program.Apart(c, "key", "number")
	program.Completes(c, "strategy", string(schema.ToolResult), string(schema.UserMessage))
	program.Completes(c, "source", schema.SourceHuman, schema.SourcePeer, schema.SourceSubagent, schema.SourceBackground, schema.SourceReminder)
}

// check rejects flags that cannot work, and fills the request.
func (k *injection) check(c *cobra.Command, args []string) error {
	structured := k.subagent != "" || k.background != ""
	switch {
	case k.agent == "" && k.req.Session == "" && !k.req.All:
		return program.UsageError("no receiver is named; write --agent A, --session S or --all")
	case len(args) == 0 && !structured:
		return program.UsageError("the text is missing; write it in quotes, or - for stdin")
	case len(args) > 0 && structured:
		return program.UsageError("a text and a result as JSON exclude each other; write one of them")
	case k.req.Number != 0 && k.req.Producer == "":
		return program.UsageError("--number needs --producer; name the program that counts")
	case c.Flags().Changed("number") && k.req.Number == 0:
		return program.UsageError("--number is 0; numbers start at 1")
	case k.ttl < 0:
		return program.UsageError("--ttl is %s; use a duration above zero, or 0 for no limit", k.ttl)
	case k.req.LateJoiners && k.agent != "":
		return program.UsageError("--late-joiners has no effect with --agent; use it with --session or --all")
	}
	k.req.TTL = schema.Duration(k.ttl)
	var err error
	if k.req.Strategy, err = strategy(k.strategy); err != nil {
		return err
	}
	return k.structured()
}

// strategy parses a strategy; empty: the brokers' default.
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

// structured parses the result that is sent instead of a text.
func (k *injection) structured() error {
	if k.subagent != "" {
		k.req.Subagent = &schema.SubagentResult{}
		if err := schema.Unmarshal([]byte(k.subagent), k.req.Subagent); err != nil {
			return program.UsageError(`--subagent cannot be read: %w; write an object such as {"id":"s1","status":"completed","answer":"…"}`, err)
		}
	}
	if k.background != "" {
		k.req.Background = &schema.BackgroundResult{}
		if err := schema.Unmarshal([]byte(k.background), k.req.Background); err != nil {
			return program.UsageError(`--background cannot be read: %w; write an object such as {"id":"j1","tool":"build","status":"completed","result":"…"}`, err)
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
	warnOfMatcher(c.ErrOrStderr(), k.req.Matcher)
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

// send stores a text that is too long for a request, and then makes the request.
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
	receipt.Duplicate = receipt.Duplicate && !k.named // a repeated request is no duplicate
	return receipt, err
}

// inDoubt adds to the error of an unanswered request how to repeat it.
func (k *injection) inDoubt(err error) error {
	lost, ok := errors.AsType[*noAnswer](err)
	switch {
	case !ok || !lost.received():
		return err
	case k.named:
		return fmt.Errorf("%w; the broker may have accepted the message: run the command again with --key %s, and it is accepted once", err, k.req.Key)
	}
	return fmt.Errorf("%w; the broker may have accepted the message: run the same command again, and it is accepted once", err)
}

// printReceipt prints the receipt of an item; done says what the command did.
func printReceipt(w io.Writer, done string, r *schema.Receipt) error {
	place := ""
	if r.Sequence != 0 {
		place = fmt.Sprintf(", sequence %d", r.Sequence)
	}
	text := fmt.Sprintf("%s: key %s%s", done, r.Key, place)
	if r.Duplicate {
		text = fmt.Sprintf("already accepted, nothing was stored: key %s%s, %s", r.Key, place, r.State)
	}
	return printLine(w, "%s", text)
}

// forWhom returns the receivers of a scope.
func forWhom(s schema.Scope) string {
	switch {
	case s.Agent != "":
		return "agent " + word(s.Agent)
	case s.Session != "":
		return "session " + word(s.Session)
	}
	return "all agents"
}

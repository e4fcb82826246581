package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// answering is one call of `broker answer`.
type answering struct {
	remote
	agent, workspace string
	req              schema.AnswerRequest
	asJSON           bool
}

// answerCommand hands an agent's answer to the others of its session.
func answerCommand() *cobra.Command {
	var k answering
	c := &cobra.Command{
		Use: "answer --session S --agent A TEXT|-", Short: "Send an agent's answer to the other agents of its session",
		Long: "answer gives an agent's answer to the other agents of its session. They see the agent under a name such as agent2,\n" +
			"and the answer under a label such as agent2.1. With --workspace they also receive the folder as it is now. Paths in\n" +
			"the answer that lead into the folder point to each receiver's copy. The text - reads stdin.",
		Example: "  broker answer --session s1 --agent alice \"The parser is done.\"\n" +
			"  broker answer --session s1 --agent alice --workspace ./work \"The parser is in $PWD/work/parse.go.\"",
		Args: func(_ *cobra.Command, args []string) error { return aText(args) },
		RunE: func(c *cobra.Command, args []string) error { return k.run(c, args) },
	}
	k.remote.flags(c)
	k.timeoutFlag(c)
	f := c.Flags()
	f.StringVar(&k.req.Session, "session", "", "session whose other agents receive the answer")
	f.StringVar(&k.agent, "agent", "", "agent that gives the answer")
	f.StringVar(&k.req.Label, "label", "", "label of the answer, such as agent2.1 (default: the agent's name in the session and the next number)")
	f.StringVar(&k.workspace, "workspace", "", fmt.Sprintf("folder that the other agents receive with the answer, at most %d files and folders and %d MiB", snapshot.MaxFiles, snapshot.MaxBytes>>20))
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	return c
}

func (k *answering) run(c *cobra.Command, args []string) error {
	switch {
	case k.agent == "":
		return program.UsageError("--agent is missing; name the agent that gives the answer")
	case k.req.Session == "":
		return program.UsageError("--session is missing; name the session whose other agents receive the answer")
	}
	text, err := textOf(args, c.InOrStdin())
	if err != nil {
		return err
	}
	receipt, err := k.send(c, text)
	if err != nil {
		return k.inDoubt(err)
	}
	if k.asJSON {
		return printJSON(c.OutOrStdout(), receipt)
	}
	done := fmt.Sprintf("%s goes to the other agents of session %s", receipt.Label, word(k.req.Session))
	if k.req.Snapshot != nil {
		done += fmt.Sprintf(", with the workspace (%d bytes packed)", k.req.Snapshot.Size)
	}
	return printReceipt(c.OutOrStdout(), done, &receipt.Receipt)
}

// send stores the workspace and a long text, and then makes the request.
func (k *answering) send(c *cobra.Command, text string) (*schema.AnswerReceipt, error) {
	ctx := c.Context()
	nc, err := k.connect(ctx, schema.VerbRelay)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if k.workspace != "" {
		if k.req.Workspace, err = filepath.Abs(k.workspace); err != nil {
			return nil, err
		}
		text = calledBy(text, k.req.Workspace)
	}
	if k.req.Content, k.req.Object, err = k.fit(ctx, nc, text); err != nil {
		return nil, err
	}
	if k.workspace != "" {
		if err := k.pack(ctx, nc, c.ErrOrStderr()); err != nil {
			return nil, err
		}
	}
	ctx, cancel := k.bounded(ctx)
	defer cancel()
	receipt := &schema.AnswerReceipt{}
	return receipt, k.askOn(ctx, nc, about{schema.VerbRelay, k.agent}, &k.req, receipt)
}

// pack stores the workspace as it is now, and prints what it leaves out.
func (k *answering) pack(ctx context.Context, nc *nats.Conn, stderr io.Writer) error {
	type packed struct {
		omitted []snapshot.Omission
		err     error
	}
	r, w := io.Pipe()
	done := make(chan packed, 1)
	go func() {
		omitted, err := snapshot.Pack(ctx, k.req.Workspace, w)
		w.CloseWithError(err)
		done <- packed{omitted, err}
	}()
	o, err := k.store(ctx, nc, r)
	r.CloseWithError(err) // ends Pack if the store failed
	p := <-done
	if p.err != nil && !(err != nil && errors.Is(p.err, err)) {
		return p.err
	}
	if err != nil {
		return fmt.Errorf("storing the workspace: %w", err)
	}
	for _, o := range p.omitted {
		_ = printLine(stderr, "left out of the workspace: %s", o)
	}
	k.req.Snapshot = &o
	return nil
}

// inDoubt adds to the error of an unanswered request how to find out whether it took effect.
func (k *answering) inDoubt(err error) error {
	lost, ok := errors.AsType[*noAnswer](err)
	switch {
	case !ok || !lost.received():
		return err
	case k.req.Label != "":
		return fmt.Errorf("%w; the broker may have accepted the answer: run the command again with the same label, and it is accepted once", err)
	}
	return fmt.Errorf("%w; the broker may have accepted the answer: look with 'broker pending'", err)
}

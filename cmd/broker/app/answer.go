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
		Use: "answer --session S --agent A TEXT|-", Short: "Hand an agent's answer to the other agents of its session",
		Long: "answer tells the other agents of a session what an agent came up with. They know it by a name such as\n" +
			"agent2, and the answer by a label such as agent2.1. With --workspace they get the folder as it is now, and\n" +
			"absolute paths into it that the answer names are theirs when they read it. - is stdin.\n\n" +
			"  broker answer --session s1 --agent alice --workspace ./work \"The parser is in $PWD/work/parse.go.\"",
		Args: func(_ *cobra.Command, args []string) error { return aText(args) },
		RunE: func(c *cobra.Command, args []string) error { return k.run(c, args) },
	}
	k.remote.flags(c)
	k.patient(c)
	f := c.Flags()
	f.StringVar(&k.req.Session, "session", "", "the session whose other agents get it")
	f.StringVar(&k.agent, "agent", "", "whose answer it is")
	f.StringVar(&k.req.Label, "label", "", "what it is called, such as agent2.1 (default: the fabric counts)")
	f.StringVar(&k.workspace, "workspace", "", "a folder that they get, too")
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
	return c
}

func (k *answering) run(c *cobra.Command, args []string) error {
	switch {
	case k.agent == "":
		return program.UsageError("it is not said whose answer it is; write --agent A")
	case k.req.Session == "":
		return program.UsageError("it is not said to whom; write --session S: the other agents of that session get it")
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

// send makes the request, after the workspace and a long text were stored.
func (k *answering) send(c *cobra.Command, text string) (*schema.AnswerReceipt, error) {
	ctx := c.Context()
	nc, err := k.connect(ctx, schema.VerbAnswer)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
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
	return receipt, k.askOn(ctx, nc, about{schema.VerbAnswer, k.agent}, &k.req, receipt)
}

// pack stores the workspace as it is now, and says what of it is left out.
func (k *answering) pack(ctx context.Context, nc *nats.Conn, stderr io.Writer) (err error) {
	if k.req.Workspace, err = filepath.Abs(k.workspace); err != nil {
		return err
	}
	type packed struct {
		left []snapshot.Omission
		err  error
	}
	r, w := io.Pipe()
	done := make(chan packed, 1)
	go func() {
		left, err := snapshot.Pack(ctx, k.req.Workspace, w)
		w.CloseWithError(err)
		done <- packed{left, err}
	}()
	o, err := k.store(ctx, nc, r)
	r.CloseWithError(err) // whoever still packs has nobody to write to
	p := <-done
	if p.err != nil && !(err != nil && errors.Is(p.err, err)) {
		return p.err
	}
	if err != nil {
		return fmt.Errorf("storing the workspace: %w", err)
	}
	for _, left := range p.left {
		fmt.Fprintf(stderr, "left out of the workspace: %s\n", left)
	}
	k.req.Snapshot = &o
	return nil
}

// inDoubt says what is not known when the request was not answered.
func (k *answering) inDoubt(err error) error {
	lost, ok := errors.AsType[*noAnswer](err)
	switch {
	case !ok || !lost.received():
		return err
	case k.req.Label != "":
		return fmt.Errorf("%w; it is not known whether the answer was accepted: say it again with its label, and it is accepted once", err)
	}
	return fmt.Errorf("%w; it is not known whether the answer was accepted: 'broker pending' tells", err)
}

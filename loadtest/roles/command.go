package roles

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"github.com/hookfabric/hookfabric/schema"
)

// commandAsk starts a program for every call, as runtimes do with command hooks. The
// program reads the event on its standard input. Exit code 0 without output means no
// opinion.
func commandAsk(program string) ask {
	return func(ctx context.Context, e *schema.Event, _ int) (*schema.Verdict, error) {
		body, err := schema.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encoding an event: %w", err)
		}
		cmd := exec.CommandContext(ctx, program)
		cmd.Stdin = bytes.NewReader(body)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", program, err)
		}
		if len(out) == 0 {
			return &schema.Verdict{Decision: schema.Continue}, nil
		}
		return verdict(out)
	}
}

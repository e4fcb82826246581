package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func renderCommand() *cobra.Command {
	var format string
	var read bool
	names := make([]string, 0, len(render.Formats()))
	for _, f := range render.Formats() {
		names = append(names, string(f))
	}
	c := &cobra.Command{
		Use:   "render --format F [--read]",
		Short: "Convert a conversation into a request of a model's API, or convert the API's answer back",
		Long: "render reads a conversation from stdin: one JSON object with \"messages\" and \"tools\". It prints these fields as\n" +
			"the API's request has them. With --read, it reads the API's complete answer and prints the model's message.\n" +
			"It needs neither a fabric nor a model. stdin can have at most 64 MiB.",
		Example: `  echo '{"messages":[{"role":"user","content":"hi"}]}' | agentshim render --format openai`,
		Args:    program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format == "" {
				return program.UsageError("--format is missing; write one of %s", strings.Join(names, ", "))
			}
			f, err := render.ParseFormat(format)
			if err != nil {
				return program.UsageError("--format: %s", err)
			}
			convert := render.RequestOf
			if read {
				convert = render.MessageOf
			}
			return converted(c.InOrStdin(), c.OutOrStdout(), func(in []byte) ([]byte, error) { return convert(f, in) })
		},
	}
	c.Flags().StringVar(&format, "format", "", "the `API`: "+strings.Join(names, ", "))
	c.Flags().BoolVar(&read, "read", false, "read an answer of the API on stdin instead of a conversation; default: off")
	program.Completes(c, "format", names...)
	return c
}

// converted prints the conversion of stdin, completely or not at all.
func converted(stdin io.Reader, stdout io.Writer, convert func([]byte) ([]byte, error)) error {
	in, err := io.ReadAll(io.LimitReader(stdin, render.MaxInput+1))
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	if len(in) > render.MaxInput {
		return fmt.Errorf("stdin is larger than the limit of %d bytes", render.MaxInput)
	}
	out, err := convert(in)
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(out, '\n'))
	return err
}

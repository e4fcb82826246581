package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/client/render"
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
		Short: "Write a conversation as the request of a model's API, or read the API's answer",
		Long: "render reads a conversation on stdin, an object of \"messages\" and \"tools\", and prints what belongs into\n" +
			"the request of an API: its messages, its place for the system, its declarations of tools. With --read it\n" +
			"reads the API's whole answer, and prints the model's message. It asks nobody, neither a fabric nor a model.",
		Args: program.NoArgs,
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
	c.Flags().StringVar(&format, "format", "", "the API: "+strings.Join(names, ", "))
	c.Flags().BoolVar(&read, "read", false, "read an answer of the API instead of a conversation")
	program.Completes(c, "format", names...)
	return c
}

// converted prints what becomes of stdin, whole or not at all.
func converted(stdin io.Reader, stdout io.Writer, convert func([]byte) ([]byte, error)) error {
	in, err := io.ReadAll(io.LimitReader(stdin, render.MaxInput+1))
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	if len(in) > render.MaxInput {
		return fmt.Errorf("stdin is larger than %d bytes", render.MaxInput)
	}
	out, err := convert(in)
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(out, '\n'))
	return err
}

package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// printLine prints one line, with control characters in names of agents, hooks and workers escaped.
func printLine(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(w, schema.Visible(fmt.Sprintf(format, args...)))
	return err
}

// row prints one row of a table, with control characters escaped.
func row(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = schema.Visible(fmt.Sprint(c))
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

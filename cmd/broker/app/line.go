package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// line prints one line, whatever agents, hooks and workers wrote into what is in it.
func line(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintln(w, schema.Visible(fmt.Sprintf(format, args...)))
	return err
}

// row prints one row of a table, whose cells stay in their columns.
func row(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = schema.Visible(fmt.Sprint(c))
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

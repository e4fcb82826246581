package app

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sectionWidth is how many columns the help of a command with sections takes.
const sectionWidth = 120

// A section is the flags of a command below one heading of its help.
type section struct {
	heading string
	declare func(*pflag.FlagSet)
}

// helpAnnotation names the annotation of a command that holds the help of its flags, by sections.
const helpAnnotation = "flags"

// addSections declares the flags of sections on a command. Its help shows them below their
// headings, in the order of their declaration.
func addSections(c *cobra.Command, sections []section) {
	var help strings.Builder
	for _, s := range sections {
		f := pflag.NewFlagSet(s.heading, pflag.ContinueOnError)
		f.SortFlags = false
		s.declare(f)
		help.WriteString(s.heading + ":\n" + f.FlagUsagesWrapped(sectionWidth) + "\n")
		c.Flags().AddFlagSet(f)
	}
	help.WriteString("Other:\n  -h, --help   show this help")
	c.Annotations = map[string]string{helpAnnotation: help.String()}
}

// cobraFlags is the part of cobra's usage template that lists the flags of a command.
const cobraFlags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"

// showSections has the help of a command and of its subcommands show sections where there are some.
func showSections(root *cobra.Command) {
	sections := `{{with index .Annotations "` + helpAnnotation + `"}}{{.}}{{else}}` + cobraFlags + `{{end}}`
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), cobraFlags, sections, 1))
}

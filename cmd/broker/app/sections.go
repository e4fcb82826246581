package app

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sectionWidth is the width in columns of the help of a command with sections.
const sectionWidth = 120

// A section is a group of flags with a heading in the help.
type section struct {
	heading string
	declare func(*pflag.FlagSet)
}

// helpAnnotation names the annotation that holds the help of a command's flags, by section.
const helpAnnotation = "flags"

// addSections declares flags on a command. Its help shows them by section, in the order of their
// declaration.
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

// showSections makes the help of a command and of its subcommands use sections.
func showSections(root *cobra.Command) {
	sections := `{{with index .Annotations "` + helpAnnotation + `"}}{{.}}{{else}}` + cobraFlags + `{{end}}`
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), cobraFlags, sections, 1))
}

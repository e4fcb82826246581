package program

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// apart is the annotation of flags that exclude each other. Its values are their names.
const apart = "hookfabric_apart"

// Apart allows at most one of these flags of c. If the command line has one, the environment
// variables of the others are ignored.
func Apart(c *cobra.Command, names ...string) {
	for _, name := range names {
		f := c.Flags().Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[apart] = names
	}
}

// given returns the names of the flags that are set.
func given(flags *pflag.FlagSet) (names []string) {
	flags.Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// onlyOne returns an error if flags exclude each other.
func onlyOne(c *cobra.Command) (err error) {
	set := given(c.Flags())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		both := slices.DeleteFunc(slices.Clone(f.Annotations[apart]), func(name string) bool { return !slices.Contains(set, name) })
		if len(both) > 1 && err == nil {
			err = UsageError("--%s contradict each other; use one of them. See '%s --help'", strings.Join(both, " and --"), c.CommandPath())
		}
	})
	return err
}

// Completes lets shells complete a flag of c with fixed words.
func Completes(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the program names an undefined flag
	}
}

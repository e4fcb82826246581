package app

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// A checkReport is the output of `broker check --json`.
type checkReport struct {
	File     string              `json:"file"`
	OK       bool                `json:"ok"`
	Hooks    int                 `json:"hooks"`
	Faults   hooksyaml.Faults    `json:"faults"`
	Warnings []hooksyaml.Warning `json:"warnings"`
}

// checkCommand is `broker check`.
func checkCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "check FILE", Short: "Check a hooks.yaml: all faults at once",
		Long: "check reads a hooks.yaml as a broker does, without a broker: its form, its matchers and its conditions. It prints all\n" +
			"faults on stderr, each with file, line, column and a fix. Only nodes can tell whether handlers load: see 'broker apply'.\n" +
			"The file - is stdin. Exit codes: 0 no faults, 1 faults or an unreadable file, 2 wrong usage.\n" +
			"\n" +
			"With --json it prints one object on stdout, also when the file has faults:\n" +
			"\n" +
			"  {\"file\":\"hooks.yaml\",\"ok\":false,\"hooks\":0,\n" +
			"   \"faults\":[{\"file\":\"hooks.yaml\",\"line\":3,\"column\":7,\"message\":\"unknown key \\\"macher\\\" of a hook\",\n" +
			"     \"hint\":\"did you mean \\\"matcher\\\"?\",\"source\":\"      macher: Bash\"}],\n" +
			"   \"warnings\":[{\"file\":\"hooks.yaml\",\"line\":9,\"column\":3,\"message\":\"…\"}]}\n" +
			"\n" +
			"Lines and columns count from 1, columns in characters. The members hint and source are optional. A file that cannot\n" +
			"be read has one fault, at 1:1.",
		Example: "  broker check hooks.yaml\n" +
			"  broker check --json - <hooks.yaml",
		Args: takes(1, 1, "one file, or - for stdin"),
		RunE: func(c *cobra.Command, args []string) error {
			name := sourceName(args[0])
			doc, err := checkSource(args[0], c.InOrStdin())
			if asJSON {
				if err := printJSON(c.OutOrStdout(), reportOf(name, doc, err)); err != nil {
					return err
				}
				return counted(name, err)
			}
			return reportCheck(c, name, doc, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object on stdout, for editors and CI")
	return c
}

func checkSource(path string, stdin io.Reader) (*hooksyaml.Document, error) {
	data, err := readSource(path, stdin)
	if err != nil {
		return nil, err
	}
	return checkConfig(sourceName(path), data)
}

// reportCheck prints the faults of a file, or its number of hooks.
func reportCheck(c *cobra.Command, name string, doc *hooksyaml.Document, err error) error {
	if err != nil {
		if _, ok := errors.AsType[hooksyaml.Faults](err); ok {
			fmt.Fprintln(c.ErrOrStderr(), err)
		}
		return counted(name, err)
	}
	for _, w := range doc.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), w)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d hooks%s, no faults\n", name, doc.Config.HookCount(), rulesOf(&doc.Config))
	return err
}

// counted returns the error for a file whose faults are printed already: their number.
func counted(name string, err error) error {
	switch faults, ok := errors.AsType[hooksyaml.Faults](err); {
	case !ok:
		return err
	case len(faults) == 1:
		return fmt.Errorf("%s has a fault", name)
	default:
		return fmt.Errorf("%s has %d faults", name, len(faults))
	}
}

// reportOf returns the report on a file that was read as doc, or could not be read.
func reportOf(name string, doc *hooksyaml.Document, err error) checkReport {
	r := checkReport{File: name, OK: err == nil, Faults: hooksyaml.Faults{}, Warnings: []hooksyaml.Warning{}}
	switch faults, ok := errors.AsType[hooksyaml.Faults](err); {
	case ok:
		r.Faults = faults
	case err != nil:
		r.Faults = hooksyaml.Faults{{File: name, Line: 1, Column: 1, Message: err.Error()}}
	default:
		r.Hooks = doc.Config.HookCount()
		r.Warnings = append(r.Warnings, doc.Warnings...)
	}
	return r
}

// rulesOf returns how many rules a configuration has; empty: it has no packs.
func rulesOf(cfg *schema.Config) string {
	if len(cfg.Packs) == 0 {
		return ""
	}
	n := 0
	for i := range cfg.Hooks {
		if rules, ok := cfg.Hooks[i].Options["rules"].([]any); ok && cfg.Hooks[i].Pack != "" {
			n += len(rules)
		}
	}
	return fmt.Sprintf(" with %d rules of packs", n)
}

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/cmd/broker/policytest"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// A testRun is `broker test`.
type testRun struct {
	asJSON, coverage, requireCases, stub bool
	junit                                string

	out     io.Writer
	results []policytest.Result
	engines []*policytest.Engine
	byPath  map[string]*policytest.Engine
}

// testCommand is `broker test`.
func testCommand() *cobra.Command {
	r := &testRun{byPath: make(map[string]*policytest.Engine)}
	c := &cobra.Command{
		Use: "test [FILE|DIR]...", Short: "Run the test cases of policies, without NATS",
		Long: "test runs cases: an event, and the verdict that it should have. Hooks are planned, run and folded as in a broker. In a\n" +
			"folder it runs all YAML files with a key cases; the default is the current folder. HOOKS.md describes the format.\n" +
			"Exit codes: 0 all cases pass, 1 a case fails, 2 wrong usage.\n" +
			"\n" +
			"With --json it prints one object per case on stdout:\n" +
			"\n" +
			"  {\"name\":\"a delete is denied\",\"ok\":false,\"file\":\"tests/shell.yaml\",\"line\":4,\n" +
			"   \"want\":[\"decision: deny\"],\"got\":[\"decision: continue\"]}",
		Example: "  broker test policies/tests\n" +
			"  broker test --coverage --junit report.xml tests/shell.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			r.out = c.OutOrStdout()
			if len(args) == 0 {
				args = []string{"."}
			}
			return errors.Join(r.run(c.Context(), args), r.close())
		},
	}
	f := c.Flags()
	f.BoolVar(&r.asJSON, "json", false, "print one JSON object per case on stdout")
	f.StringVar(&r.junit, "junit", "", "also write the results as JUnit XML to `FILE`")
	f.BoolVar(&r.coverage, "coverage", false, "list the hooks that no case ran, and the values of conditions that no case reached")
	f.BoolVar(&r.requireCases, "require-cases", false, "fail if no case ran a hook")
	f.BoolVar(&r.stub, "stub", false, "do not run programs, Python functions and HTTP hooks: they have no opinion")
	return c
}

func (r *testRun) run(ctx context.Context, paths []string) error {
	files, err := policytest.Find(paths)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there are no cases in %s; write a YAML file with cases:, see schema/HOOKS.md", strings.Join(paths, ", "))
	}
	for _, file := range files {
		if err := r.file(ctx, file); err != nil {
			return err
		}
	}
	return r.report()
}

// file runs the cases of one file.
func (r *testRun) file(ctx context.Context, path string) error {
	f, err := policytest.Read(path)
	if err != nil {
		return err
	}
	config, err := f.ConfigPath()
	if err != nil {
		return err
	}
	e, err := r.engine(config)
	if err != nil {
		return err
	}
	results, err := policytest.Run(ctx, e, f, 2*runtime.GOMAXPROCS(0))
	r.results = append(r.results, results...)
	return err
}

// engine returns the engine of a configuration.
func (r *testRun) engine(config string) (*policytest.Engine, error) {
	if e := r.byPath[config]; e != nil {
		return e, nil
	}
	doc, err := ReadConfig(config)
	if err != nil {
		if _, ok := errors.AsType[hooksyaml.Faults](err); ok {
			return nil, fmt.Errorf("the configuration of the cases is not valid:\n%w", err)
		}
		return nil, err
	}
	compiler, err := cond.NewCompiler()
	if err != nil {
		return nil, err
	}
	e, err := policytest.NewEngine(policytest.Options{
		Config: doc.Config, Condition: compiler.Compile, Runners: runners.New(slog.New(slog.DiscardHandler)), Inline: runners.Inline(), Stub: r.stub,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config, err)
	}
	r.engines, r.byPath[config] = append(r.engines, e), e
	return e, r.rules(compiler, doc)
}

// rules runs the cases of the rules in a configuration's files.
func (r *testRun) rules(c *cond.Compiler, doc *hooksyaml.Document) error {
	for _, name := range slices.Sorted(maps.Keys(doc.Files)) {
		f, err := hooksyaml.ReadRules(name, []byte(doc.Files[name]), hooksyaml.Options{})
		if err != nil {
			return err
		}
		results, err := policytest.RunRules(c, name, f)
		r.results = append(r.results, results...)
		if err != nil {
			return err
		}
	}
	return nil
}

// report prints the results, and returns an error if a case failed.
func (r *testRun) report() error {
	failed := 0
	for i := range r.results {
		x := &r.results[i]
		if !x.OK {
			failed++
		}
		if err := r.print(x); err != nil {
			return err
		}
	}
	if r.junit != "" {
		if err := r.writeJUnit(); err != nil {
			return err
		}
	}
	untested := r.gaps()
	if !r.asJSON {
		fmt.Fprintf(r.out, "%d cases: %d passed, %d failed\n", len(r.results), len(r.results)-failed, failed)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d cases failed", failed, len(r.results))
	case r.requireCases && len(untested) > 0:
		return fmt.Errorf("no case runs %s; write one, or leave out --require-cases", strings.Join(untested, ", "))
	}
	return nil
}

func (r *testRun) print(x *policytest.Result) error {
	if r.asJSON {
		return printJSON(r.out, x)
	}
	if x.OK {
		_, err := fmt.Fprintf(r.out, "ok    %s\n", x.Name)
		return err
	}
	step := ""
	if x.Step > 0 {
		step = fmt.Sprintf(", step %d", x.Step)
	}
	fmt.Fprintf(r.out, "FAIL  %s (%s:%d%s)\n", x.Name, x.File, x.Line, step)
	for i := range x.Got {
		if i < len(x.Want) {
			fmt.Fprintf(r.out, "      want %s\n", x.Want[i])
		}
		fmt.Fprintf(r.out, "      got  %s\n", x.Got[i])
	}
	return nil
}

func (r *testRun) writeJUnit() error {
	f, err := os.Create(r.junit)
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return errors.Join(policytest.WriteJUnit(f, r.results), f.Close())
}

// gaps prints what no case reached, and returns the hooks that no case ran.
func (r *testRun) gaps() (untested []string) {
	for _, e := range r.engines {
		untested = append(untested, e.Untested()...)
		if !r.coverage || r.asJSON {
			continue
		}
		for _, g := range e.Gaps() {
			fmt.Fprintf(r.out, "no case  %s: %s\n", g.Hook, g.Missing)
		}
	}
	return untested
}

func (r *testRun) close() error {
	var errs []error
	for _, e := range r.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

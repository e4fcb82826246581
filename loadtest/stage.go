package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/loadtest/live"
	"github.com/hookfabric/hookfabric/loadtest/machine"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// measuring has the flags that all commands that measure share.
type measuring struct {
	json, html, svg string
	log, profiles   string
	metrics         string
	reps            int
	quick, noFail   bool
}

func flags(c *cobra.Command) *measuring {
	f := new(measuring)
	f.outputs(c)
	c.Flags().IntVar(&f.reps, "reps", 0, "number of repetitions (default: enough for narrow intervals)")
	c.Flags().BoolVar(&f.quick, "quick", false, "measure briefly, to see that it works; the figures are not reliable")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure exceeds its budget; a wrong answer still fails the run")
	return f
}

// outputs adds the flags for output files.
func (f *measuring) outputs(c *cobra.Command) {
	c.Flags().StringVar(&f.json, "json", "", "also write the report as JSON to `FILE`")
	c.Flags().StringVar(&f.html, "html", "", "also write the report with its plots as an HTML page to `FILE`")
	c.Flags().StringVar(&f.svg, "svg", "", "also write each plot as an SVG picture to the folder `DIR`")
	c.Flags().StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics of the run on loopback at `HOST:PORT`, path /metrics")
	c.Flags().StringVar(&f.log, "log", "", "write the log of all processes to `FILE` (default: a temporary file)")
	c.Flags().StringVar(&f.profiles, "profiles", "", "write a CPU profile of each process to the folder `DIR`")
}

// errInterrupted is returned for an interrupted run that has a report.
var errInterrupted = errors.New("the report contains the measurements until then")

// outcome is the result of every run: a [result.Document], or a type that embeds one.
type outcome interface{ OK() bool }

// documented is an outcome that can be compared, drawn and shown in a browser.
type documented interface{ Result() *result.Document }

// printer is an outcome with its own table for the terminal.
type printer interface{ Print(w io.Writer) error }

// stage has what a run needs besides its options. Both are removed afterwards.
type stage struct {
	dir  string
	crew *proc.Crew
	// live shows the run while it lasts. Lines of progress are written to it.
	live *live.Run
}

// staged runs in a new directory and reports the result. If the run fails, it adds the end
// of the children's log to the error.
func (f *measuring) staged(c *cobra.Command, run func(stage) (outcome, error)) error {
	if f.reps < 0 {
		return usage{fmt.Errorf("--reps is %d; write a positive number such as 10, or leave it out", f.reps)}
	}
	if err := f.places(); err != nil {
		return err
	}
	shown, err := live.Start(live.Options{Scenario: c.Name(), Progress: c.ErrOrStderr(), Metrics: f.metrics})
	if errors.Is(err, live.ErrAddress) {
		return usage{err}
	}
	if err != nil {
		return err
	}
	r, err := f.acted(c, shown, run)
	if err = errors.Join(err, shown.Close()); err != nil {
		return err
	}
	return interrupted(c, f.finish(c, r))
}

// interrupted returns the error of a command that a signal interrupted. A missed budget is
// not reported then, because the figures cover only a part of the run.
func interrupted(c *cobra.Command, err error) error {
	if c.Context().Err() == nil || err != nil && !errors.Is(err, errBudget) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(c.Context()), errInterrupted)
}

// acted runs and fills in the fields that all results share. An interrupted run returns the
// results so far, or an error if it has none.
func (f *measuring) acted(c *cobra.Command, shown *live.Run, run func(stage) (outcome, error)) (outcome, error) {
	if err := loopback(c.Context()); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the run: %w", err)
	}
	defer os.RemoveAll(dir)
	log, err := os.OpenFile(cmp.Or(f.log, filepath.Join(dir, "log")), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the log of the run: %w", err)
	}
	defer log.Close()
	facts, began := machine.Here(), time.Now() // before the run itself is the load
	defer context.AfterFunc(c.Context(), func() {
		fmt.Fprintf(shown, "%v: stopping the run and reporting its measurements; a second signal stops immediately\n", context.Cause(c.Context()))
	})()
	r, err := run(stage{dir: dir, live: shown, crew: &proc.Crew{Args: []string{"role", "--profiles", f.profiles}, Log: log}})
	if err != nil && c.Context().Err() != nil {
		// The interruption caused the error.
		return nil, fmt.Errorf("%w: the run ended before its first measurement", context.Cause(c.Context()))
	}
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, lastWords(log))
	}
	if r, ok := r.(documented); ok {
		d := r.Result()
		d.Scenario, d.Title = cmp.Or(d.Scenario, c.Name()), cmp.Or(d.Title, c.Short)
		d.Started, d.Took, d.Machine, d.Command = began.UTC().Round(time.Millisecond), time.Since(began).Seconds(), facts, typed(c)
		if c.Context().Err() != nil {
			d.Interrupted = context.Cause(c.Context()).Error()
			d.Notes = append([]string{fmt.Sprintf("CAREFUL: this run was interrupted (%s): the figures cover only its first %.1f s, and are less certain.", d.Interrupted, d.Took)}, d.Notes...)
		}
	}
	return r, nil
}

// typed returns the command line without the flags for output and exit codes, which do not
// affect the figures.
func typed(c *cobra.Command) string {
	words := []string{c.CommandPath()}
	c.Flags().Visit(func(f *pflag.Flag) {
		word, value := "--"+f.Name, f.Value.String()
		if all, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(all.GetSlice(), ",")
		}
		if f.Value.Type() != "bool" || value != "true" {
			word += "=" + value
		}
		if strings.Contains(word, " ") {
			word = "'" + word + "'"
		}
		if !slices.Contains([]string{"json", "html", "svg", "log", "profiles", "metrics", "no-fail", "out"}, f.Name) {
			words = append(words, word)
		}
	})
	return strings.Join(append(words, c.Flags().Args()...), " ")
}

// finish prints r and writes it to all places that the flags name, even if one of them
// fails. It returns an error if a write fails or if r is not OK.
func (f *measuring) finish(c *cobra.Command, r outcome) error {
	var errs []error
	d, ok := r.(documented)
	if p, own := r.(printer); own {
		errs = append(errs, p.Print(c.OutOrStdout()))
	} else if ok {
		errs = append(errs, report.Print(c.OutOrStdout(), d.Result()))
	}
	if f.json != "" {
		errs = append(errs, write(f.json, r))
	}
	if ok {
		errs = append(errs, d.Result().Sound(), f.drawn(d.Result()))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !r.OK() && !f.forgives(r) {
		return errBudget
	}
	return nil
}

// forgives reports whether the flags allow r to exceed its budgets. It never allows a wrong
// answer.
func (f *measuring) forgives(r outcome) bool {
	d, ok := r.(documented)
	return f.noFail && (!ok || !slices.ContainsFunc(d.Result().Checks, func(c result.Check) bool { return !c.OK() }))
}

// drawn writes the page and the pictures that the flags name.
func (f *measuring) drawn(d *result.Document) error {
	var errs []error
	if f.html != "" {
		errs = append(errs, writePage(f.html, d))
	}
	if f.svg != "" {
		_, err := report.Pictures(f.svg, d)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writePage writes documents as HTML.
func writePage(file string, docs ...*result.Document) error {
	var page bytes.Buffer
	if err := report.HTML(&page, docs...); err != nil {
		return err
	}
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// write writes v as indented JSON.
func write(file string, v any) error {
	body, err := schema.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	text := jsontext.Value(body)
	if err := text.Indent(); err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// lastWords returns the end of the children's log.
func lastWords(log *os.File) string {
	const enough = 8000
	info, err := log.Stat()
	if err != nil || info.Size() == 0 {
		return ""
	}
	tail := make([]byte, min(info.Size(), enough))
	if _, err := log.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return ""
	}
	return "\nlast lines of the processes' log:\n" + string(tail)
}

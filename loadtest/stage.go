package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// measuring has the flags that all commands that measure share.
type measuring struct {
	json, html, svg string
	log, profiles   string
	metrics         string
	noFail          bool
}

func flags(c *cobra.Command) *measuring {
	f := new(measuring)
	c.Flags().StringVar(&f.json, "json", "", "also write the report as JSON to `FILE`")
	c.Flags().StringVar(&f.html, "html", "", "also write the report with its plots as an HTML page to `FILE`")
	c.Flags().StringVar(&f.svg, "svg", "", "also write each plot as an SVG picture to the folder `DIR`")
	c.Flags().StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics of the run on loopback at `HOST:PORT`, path /metrics")
	c.Flags().StringVar(&f.log, "log", "", "write the log of all processes to `FILE` (default: a temporary file)")
	c.Flags().StringVar(&f.profiles, "profiles", "", "write a CPU profile of each process to the folder `DIR`")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 if a figure exceeds its budget; a wrong answer still fails the run")
	return f
}

// errInterrupted is returned for an interrupted run that has a report.
var errInterrupted = errors.New("the report contains the measurements until then")

// outcome is the result of every run: a [report.Document], or a type that embeds one.
type outcome interface{ Result() *report.Document }

// stage has what a run needs besides its options. Its folder is removed afterwards.
type stage = fleet.Stage

// staged runs in a new directory and reports the result. If the run fails, it adds the end
// of the children's log to the error.
func (f *measuring) staged(c *cobra.Command, run func(stage) (outcome, error)) error {
	if err := f.places(); err != nil {
		return err
	}
	shown, err := report.StartLive(report.LiveOptions{Scenario: c.Name(), Progress: c.ErrOrStderr(), Metrics: f.metrics})
	if errors.Is(err, report.ErrAddress) {
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
func (f *measuring) acted(c *cobra.Command, shown *report.Live, run func(stage) (outcome, error)) (outcome, error) {
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
	facts, began := report.Here(), time.Now() // before the run itself is the load
	defer context.AfterFunc(c.Context(), func() {
		fmt.Fprintf(shown, "%v: stopping the run and reporting its measurements; a second signal stops immediately\n", context.Cause(c.Context()))
	})()
	r, err := run(stage{Dir: dir, Live: shown, Crew: &proc.Crew{Args: []string{"role", "--profiles", f.profiles}, Log: log}})
	switch {
	case err != nil && c.Context().Err() != nil: // the interruption caused the error
		return nil, fmt.Errorf("%w: the run ended before its first measurement", context.Cause(c.Context()))
	case err != nil:
		return nil, fmt.Errorf("%w%s", err, lastWords(log))
	}
	d := r.Result()
	d.Scenario, d.Title = cmp.Or(d.Scenario, c.Name()), cmp.Or(d.Title, c.Short)
	d.Started, d.Took, d.Machine, d.Command = began.UTC().Round(time.Millisecond), time.Since(began).Seconds(), facts, typed(c)
	if c.Context().Err() != nil {
		d.Interrupted = context.Cause(c.Context()).Error()
		d.Notes = append([]string{fmt.Sprintf("CAREFUL: this run was interrupted (%s): the figures cover only its first %.1f s, and are less certain.", d.Interrupted, d.Took)}, d.Notes...)
	}
	return r, nil
}

// typed returns the command line without the flags for output and exit codes, which do not
// affect the figures.
func typed(c *cobra.Command) string {
	words := []string{c.CommandPath()}
	c.Flags().Visit(func(f *pflag.Flag) {
		word := "--" + f.Name
		if value := valueOf(f); f.Value.Type() != "bool" || value != "true" {
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
	d := r.Result()
	errs := []error{report.Print(c.OutOrStdout(), d), d.Sound(), f.drawn(d)}
	if f.json != "" {
		errs = append(errs, write(f.json, r))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !d.OK() && !f.forgives(d) {
		return errBudget
	}
	return nil
}

// forgives reports whether the flags allow a run to exceed its budgets. They never allow a
// wrong answer.
func (f *measuring) forgives(d *report.Document) bool {
	return f.noFail && !slices.ContainsFunc(d.Checks, func(c report.Check) bool { return !c.OK() })
}

// drawn writes the page and the pictures that the flags name.
func (f *measuring) drawn(docs ...*report.Document) error {
	var errs []error
	if f.html != "" {
		errs = append(errs, writePage(f.html, docs...))
	}
	if f.svg != "" {
		for _, d := range docs {
			_, err := report.Pictures(f.svg, d)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func writePage(file string, docs ...*report.Document) error {
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
	text := jsontext.Value(body)
	if err == nil {
		err = text.Indent()
	}
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
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

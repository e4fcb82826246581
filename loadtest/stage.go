package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// measuring is what every command that measures can be told.
type measuring struct {
	json     string
	log      string
	profiles string
	reps     int
	quick    bool
	noFail   bool
}

func flags(c *cobra.Command) *measuring {
	f := new(measuring)
	f.outputs(c)
	c.Flags().IntVar(&f.reps, "reps", 0, "how often to measure everything (0: as often as its intervals need)")
	c.Flags().BoolVar(&f.quick, "quick", false, "measure briefly: to see that it works, not to read the figures")
	c.Flags().BoolVar(&f.noFail, "no-fail", false, "exit with 0 even if a budget is exceeded")
	return f
}

// outputs are the flags that say where to write to.
func (f *measuring) outputs(c *cobra.Command) {
	c.Flags().StringVar(&f.json, "json", "", "write the report as JSON to `FILE`, too")
	c.Flags().StringVar(&f.log, "log", "", "write what the processes log to `FILE`, and keep it")
	c.Flags().StringVar(&f.profiles, "profiles", "", "write a CPU profile of each process into `DIR`")
}

// report is what every run ends with.
type report interface {
	Print(w io.Writer) error
	OK() bool
}

// stage is what a run needs besides its options; both are gone afterwards.
type stage struct {
	dir  string
	crew *proc.Crew
}

// staged runs on a stage of its own and reports. When the run goes wrong it
// adds what the children said.
func (f *measuring) staged(c *cobra.Command, run func(stage) (report, error)) error {
	dir, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return fmt.Errorf("making a directory for the run: %w", err)
	}
	defer os.RemoveAll(dir)
	log, err := os.OpenFile(cmp.Or(f.log, filepath.Join(dir, "log")), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("making a log for the run: %w", err)
	}
	defer log.Close()
	r, err := run(stage{dir: dir, crew: &proc.Crew{Args: []string{"role", "--profiles", f.profiles}, Log: log}})
	if err != nil {
		return fmt.Errorf("%w%s", err, lastWords(log))
	}
	return f.finish(c, r)
}

// finish prints r, writes it where it was asked for, and fails if it should.
func (f *measuring) finish(c *cobra.Command, r report) error {
	if err := r.Print(c.OutOrStdout()); err != nil {
		return err
	}
	if f.json != "" {
		if err := write(f.json, r); err != nil {
			return err
		}
	}
	if !r.OK() && !f.noFail {
		return errBudget
	}
	return nil
}

// write writes v as JSON that people can read.
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

// lastWords is the end of the children's log.
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
	return "\nthe end of what the processes logged:\n" + string(tail)
}

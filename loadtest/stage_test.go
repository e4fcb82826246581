package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// TestARunIsWrittenWhereverItWasAskedFor checks the outputs that all runs share.
func TestARunIsWrittenWhereverItWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	var shown *report.Live
	c := &cobra.Command{Use: "walk", Short: "Walk a while"}
	f := flags(c)
	c.Flags().Bool("quick", false, "")
	c.Flags().Int("reps", 0, "")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.staged(c, func(s stage) (outcome, error) {
			shown = s.Live
			return &report.Document{Plots: []report.Plot{{Title: "The way"}}}, nil
		})
	}
	c.SetOut(t.Output())
	c.SetErr(t.Output())
	at := func(name string) string { return filepath.Join(dir, name) }
	c.SetArgs([]string{"--json", at("walk.json"), "--html", at("walk.html"), "--svg", at("pictures"), "--metrics", "127.0.0.1:0", "--quick", "--reps", "7", "--no-fail"})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := report.ReadFile(at("walk.json"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Scenario != "walk" || d.Title != "Walk a while" || d.Command != "walk --quick --reps=7" || d.Started.IsZero() || d.Took <= 0 || d.Machine.CPUs == 0 {
		t.Errorf("it is %+v", d)
	}
	for name, want := range map[string]string{"walk.html": "Walk a while", "pictures/walk-the-way.svg": "The way"} {
		if body, err := os.ReadFile(at(name)); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s is %d bytes, %v", name, len(body), err)
		}
	}
	if shown.Addr() == "" {
		t.Error("no metrics were served")
	}
}

func TestAResultThatContradictsItselfIsAnError(t *testing.T) {
	c := &cobra.Command{Use: "walk"}
	c.SetOut(t.Output())
	err := new(measuring).finish(c, &report.Document{Figures: []report.Figure{{Name: "p50", Value: 5}}})
	if err == nil || !strings.Contains(err.Error(), "outside its interval") {
		t.Errorf("it ended with %v", err)
	}
}

func TestAWrongAnswerIsNeverForgiven(t *testing.T) {
	slow := report.Document{Figures: []report.Figure{report.Figure{Low: 2, High: 3}.Within(1)}}
	wrong := report.Document{Checks: []report.Check{{Seen: 1, Wrong: 1}}}
	for _, noFail := range []bool{false, true} {
		f := measuring{noFail: noFail}
		if f.forgives(&wrong) {
			t.Errorf("a wrong answer is forgiven with --no-fail=%v", noFail)
		}
		if f.forgives(&slow) != noFail {
			t.Errorf("slowness is forgiven with --no-fail=%v", f.forgives(&slow))
		}
	}
}

func TestARunThatIsInterruptedSaysThatAndNothingElse(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	c := &cobra.Command{Use: "walk", SilenceErrors: true, SilenceUsage: true}
	f := flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return f.staged(c, func(s stage) (outcome, error) {
			if _, err := s.Crew.Log.Write([]byte("a step\n")); err != nil {
				t.Error(err)
			}
			interrupt(errors.New("a stop sign"))
			return nil, errors.New("the walker fell")
		})
	}
	page := filepath.Join(t.TempDir(), "walk.html")
	c.SetErr(t.Output())
	c.SetArgs([]string{"--html", page})
	err := c.ExecuteContext(ctx)
	if err == nil || !strings.HasPrefix(err.Error(), "a stop sign: ") || strings.Contains(err.Error(), "step") {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(page); err == nil {
		t.Error("there is a page that says nothing")
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestWhatCanNotBeWrittenIsSaidBeforeTheRun checks that a run does not start if its results
// cannot be written.
func TestWhatCanNotBeWrittenIsSaidBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--json", "--html", "--svg"} {
		c := &cobra.Command{Use: "walk", SilenceErrors: true, SilenceUsage: true}
		f := flags(c)
		c.RunE = func(c *cobra.Command, _ []string) error {
			return f.staged(c, func(stage) (outcome, error) {
				t.Errorf("with a wrong %s it ran", flag)
				return nil, errors.New("it ran")
			})
		}
		c.SetArgs([]string{flag, filepath.Join(file, "below")})
		c.SetErr(t.Output())
		err := c.ExecuteContext(t.Context())
		if exitCode(err) != 2 || !strings.Contains(err.Error(), "name a") {
			t.Errorf("with a wrong %s it ended with %v", flag, err)
		}
	}
	if err := (&measuring{json: file, html: filepath.Join(dir, "new"), svg: filepath.Join(dir, "pictures")}).places(); err != nil {
		t.Error(err)
	}
	if body, err := os.ReadFile(file); err != nil || string(body) != "kept" {
		t.Errorf("a report that was there is %q now, %v", body, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking left a file: %v", err)
	}
}

func TestTheOverviewRefusesATimeThatCanNotBeMeasured(t *testing.T) {
	for _, long := range []string{"0", "-1s", "1000h"} {
		c := commands()
		c.SetArgs([]string{"--for", long})
		c.SetErr(t.Output())
		if err := c.ExecuteContext(t.Context()); exitCode(err) != 2 || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("--for %s ended with %v", long, err)
		}
	}
}

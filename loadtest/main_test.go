package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/crash"
	"github.com/hookfabric/hookfabric/loadtest/scale"
	"github.com/hookfabric/hookfabric/loadtest/state"
	"github.com/hookfabric/hookfabric/schema"
)

// The test program stands in for the command: its children are itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "role" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// loadtest runs the command line and returns what it printed.
func loadtest(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := commands()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(t.Output())
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestAloneItSaysWhatThereIs(t *testing.T) {
	out, err := loadtest(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bench", "scale", "state", "crash"} {
		if !strings.Contains(out, "\n  "+want+" ") {
			t.Errorf("the usage lacks %q:\n%s", want, out)
		}
	}
}

func TestMistypedArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"bench", "--fast"}, {"bench", "all"}, {"bank"}, {"role", "king"}, {"crash", "--for", "1ms"}, {"crash", "--agents", "0"}, {"crash", "--kill", "cat"}, {"state", "--only", "weather"}} {
		_, err := loadtest(t, args...)
		if err == nil || exitCode(err) != 2 {
			t.Errorf("%q gave %v", args, err)
		}
	}
}

// TestBench looks whether every row is answered right, never how fast.
func TestBench(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a dozen processes")
	}
	file := filepath.Join(t.TempDir(), "bench.json")
	out, err := loadtest(t, "bench", "--quick", "--reps", "1", "--no-fail", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "8 hooks of a remote pool") {
		t.Errorf("the table lacks a row:\n%s", out)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Name == "" || row.Callers == 0 || row.Low > row.Ratio || row.Ratio > row.High {
			t.Errorf("a row that can not be: %+v", row)
		}
	}
	for _, a := range r.Absolute {
		if a.P50 <= 0 || a.P99 < a.P50 || a.PerSecond <= 0 {
			t.Errorf("a figure that can not be: %+v", a)
		}
	}
}

// TestScale looks whether waiting hooks are answered right with each number of workers.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts half a dozen processes")
	}
	file := filepath.Join(t.TempDir(), "scale.json")
	if _, err := loadtest(t, "scale", "--quick", "--no-fail", "--json", file); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r scale.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 3 {
		t.Fatalf("there are %d rows", len(r.Rows))
	}
	for _, row := range r.Rows {
		if row.P50 < r.Wait || row.PerSecond > row.Ideal*1.2 {
			t.Errorf("hooks that wait %v can not be that fast: %+v", r.Wait, row)
		}
	}
}

// TestCrash is the short form of a run that belongs on a machine of its own.
// Most of its time it waits for the leases of the shims that were killed.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts ten processes, and kills them")
	}
	file := filepath.Join(t.TempDir(), "crash.json")
	out, err := loadtest(t, "crash", "--for", "8s", "--agents", "20", "--injections", "1000", "--json", file)
	t.Log(out)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r crash.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, kind := range crash.Kinds() {
		if r.Killed[kind] == 0 {
			t.Errorf("no %s was killed", kind)
		}
	}
	if f := r.Findings; f.Accepted < 1000 || f.Delivered != f.Accepted || f.Repeats == 0 || r.Calls.Asked == 0 {
		t.Errorf("a run that can not be: %+v", r)
	}
}

// TestState looks whether every part is answered right, never how fast, and
// leaves out the one in which a cluster has no leader for seconds.
func TestState(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two dozen processes")
	}
	file := filepath.Join(t.TempDir(), "state.json")
	_, err := loadtest(t, "state", "--quick", "--no-fail", "--only", "speed,others,broadcast", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r state.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Speed {
		if s.P50 <= 0 || s.P99 < s.P50 || s.PerSecond <= 0 {
			t.Errorf("a figure that can not be: %+v", s)
		}
	}
	if len(r.Failures) > 0 || len(r.Rows) == 0 || r.Others == nil || r.Others.Start <= 0 || r.Broadcast == nil || !r.Broadcast.OK() {
		t.Errorf("a run that can not be: %+v", r)
	}
}

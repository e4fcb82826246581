package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scale"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/loadtest/internal/shim"
	"github.com/hookfabric/hookfabric/schema"
)

// TestMain lets the test program run as each of the child processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "role" {
		os.Exit(run(os.Args[1:]))
	}
	bustest.Overlap()
	os.Exit(m.Run())
}

// Long tests run in parallel: they check answers, never times, and wait for most of their
// time.

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

func TestItSaysWhatThereIs(t *testing.T) {
	out, err := loadtest(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bench", "scale", "model", "state", "shim", "loop", "notice", "freeze", "record", "cluster", "fleet", "saturate", "overload", "chaos", "soak", "crash", "run", "compare", "show"} {
		if !strings.Contains(out, "\n  "+want+" ") {
			t.Errorf("the usage lacks %q:\n%s", want, out)
		}
	}
}

func TestEachCommandHasAnExampleThatItUnderstands(t *testing.T) {
	for _, c := range commands().Commands() {
		if c.Hidden && c.Name() != "tables" {
			continue
		}
		if !strings.HasPrefix(c.Example, "  loadtest "+c.Name()) {
			t.Errorf("%s has the example %q", c.Name(), c.Example)
		}
		for line := range strings.Lines(c.Example) {
			flags := strings.Fields(strings.ReplaceAll(line, "'", ""))[2:]
			if err := c.ParseFlags(flags); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, err := loadtest(t, "completion", shell); err != nil || !strings.Contains(out, "loadtest") {
			t.Errorf("completion of %s is %q, %v", shell, out, err)
		}
	}
}

func TestTheUsageSaysWhatAScenarioIsWithoutFlags(t *testing.T) {
	for kind, want := range map[string]string{"fleet": "(default 300)", "saturate": "(default 5s)", "chaos": "(default 1m0s)"} {
		if out, err := loadtest(t, kind, "--help"); err != nil || !strings.Contains(out, want) {
			t.Errorf("the usage of %s lacks %q, %v:\n%s", kind, want, err, out)
		}
	}
}

// TestAloneItShowsWhatMattersMost checks that all parts exist and that every row of its
// bench was answered right. It does not check times.
func TestAloneItShowsWhatMattersMost(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether the run without a name shows its table, its picture and its page stays untested")
	}
	t.Parallel()
	dir := t.TempDir()
	out, err := loadtest(t, "--for", "2s", "--out", dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"pool, 3 hooks", "command per call", "p99.9", "every call was answered", filepath.Join(dir, "report.html")} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q:\n%s", want, out)
		}
	}
	for _, file := range []string{"report.html", "bench.json", "fleet.json"} {
		if body, err := os.ReadFile(filepath.Join(dir, file)); err != nil || len(body) < 1000 {
			t.Errorf("%s has %d bytes, %v", file, len(body), err)
		}
	}
	benched(t, filepath.Join(dir, "bench.json"))
}

func TestMistypedArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"bench", "--fast"}, {"bench", "--only", "no such row"}, {"bench", "--reps", "-1"}, {"bench", "--slack", "0.5"}, {"state", "--slack", "NaN"}, {"shim", "--slack", "much"}, {"bench", "--log", "/no/such/dir/log"}, {"crash", "--profiles", "/dev/null/profiles"}, {"--log", "/no/such/dir/log"}, {"bench", "--record", "all"}, {"bench", "all"}, {"bank"}, {"--fast"}, {"role", "king"}, {"bench", "--metrics", "0.0.0.0:9900"}, {"bench", "--metrics", "here"}, {"crash", "--for", "1ms"}, {"crash", "--agents", "0"}, {"crash", "--kill", "cat"}, {"chaos", "--kinds", "flood"}, {"chaos", "--members", "cat"}, {"soak", "--for", "1s"}, {"run"}, {"run", "gone.yaml"}, {"run", "/dev/zero"}, {"fleet", "--agents", "0"}, {"overload", "--connections", "900"}, {"state", "--only", "weather"}, {"scale", "--only", "weather"}, {"notice", "--only", "weather"}, {"freeze", "--shims", "0"}, {"cluster", "--only", "weather"}, {"cluster", "--away", "1m"}, {"record", "--rate", "0"}, {"record", "--rate", "NaN"}, {"cluster", "--rate", "NaN"}, {"soak", "--of-knee", "NaN"}, {"fleet", "--creds", "me.creds"}, {"fleet", "--embedded", "--nats", "nats://127.0.0.1:1"}, {"fleet", "--embedded", "--brokers", "2"}, {"model", "--agents", "Inf"}, {"model", "--html", "/no/such/dir/page.html"}} {
		_, err := loadtest(t, args...)
		if err == nil || exitCode(err) != 2 {
			t.Errorf("%q gave %v", args, err)
		}
	}
}

// interrupter cancels when a text is written to it.
type interrupter struct {
	at   string
	stop func()
}

func (i interrupter) Write(text []byte) (int, error) {
	if strings.Contains(string(text), i.at) {
		i.stop()
	}
	return len(text), nil
}

// TestAnInterruptedRunReportsWhatItHas interrupts each run at a line of its progress.
func TestAnInterruptedRunReportsWhatItHas(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether interrupted runs report what they have stays untested")
	}
	t.Parallel()
	for at, args := range map[string][]string{
		"repetition 1 of 500":       {"bench", "--quick", "--reps", "500", "--only", "no hook"},
		"embedded server: 2 of 500": {"notice", "--reps", "500", "--only", "crash"},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		file := filepath.Join(t.TempDir(), "run.json")
		c := commands()
		c.SetArgs(append(args, "--json", file))
		c.SetOut(t.Output())
		c.SetErr(interrupter{at, func() { stop(errors.New("a stop sign")) }})
		if err := c.ExecuteContext(ctx); !errors.Is(err, errInterrupted) || exitCode(err) != 1 {
			t.Errorf("%s ends with %v", args[0], err)
		}
		d, err := report.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d.Interrupted != "a stop sign" || len(d.Figures) == 0 || !strings.HasPrefix(d.Notes[0], "CAREFUL: this run was interrupted (a stop sign)") {
			t.Errorf("%s reports %+v", args[0], d)
		}
	}
}

// TestShim checks that every program answers right. It does not check times.
func TestShim(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether the programs that shim measures answer right stays untested")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shim.json")
	out, err := loadtest(t, "shim", "--quick", "--no-fail", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r shim.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) < 3 || r.Binary == 0 || !strings.Contains(out, "through the daemon") {
		t.Errorf("%+v\n%s", r, out)
	}
	for _, row := range r.Rows {
		if row.Ratio <= 0 || row.Low > row.Ratio || row.High < row.Ratio {
			t.Errorf("%+v", row)
		}
	}
}

// benched checks the bench of the run without a subcommand.
func benched(t *testing.T, file string) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Rows, func(r bench.Row) bool { return r.Name == "pool, 8 hooks" }) {
		t.Errorf("a row is lacking of %d", len(r.Rows))
	}
	for _, row := range r.Rows {
		if row.Name == "" || row.Callers == 0 || row.Low > row.Ratio || row.Ratio > row.High {
			t.Errorf("a row that cannot be: %+v", row)
		}
	}
	for _, a := range r.Absolute {
		if a.P50 <= 0 || a.P99 < a.P50 || a.PerSecond <= 0 {
			t.Errorf("a figure that cannot be: %+v", a)
		}
	}
}

func TestRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("short: what brokers write down stays uncounted")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record.json")
	out, err := loadtest(t, "record", "--quick", "--no-fail", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d report.Document
	if err := schema.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Checks {
		if !c.OK() {
			t.Errorf("%+v\n%s", c, out)
		}
	}
	if len(d.Checks) != 5 || len(d.Figures) != 12 {
		t.Errorf("%d checks, %d figures:\n%s", len(d.Checks), len(d.Figures), out)
	}
}

// TestLoop checks the answers of all queries and their messages to workers, not the times.
func TestLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the messages of a query to workers are not counted")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "loop.json")
	out, err := loadtest(t, "loop", "--quick", "--no-fail", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Figures) != 24 || len(d.Checks) != 1 || d.Checks[0].Seen != 10 || !d.OK() {
		t.Errorf("%d figures, the checks %+v:\n%s", len(d.Figures), d.Checks, out)
	}
}

// TestScale checks that every part is answered right. It does not check times.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether calls are answered right as things grow stays untested")
	}
	t.Parallel()
	testScale(t, scale.Parts()[:len(scale.Parts())/2])
}

// TestScaleOfWhatIsKept checks the other parts like TestScale.
func TestScaleOfWhatIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("short: whether calls are answered right as what is kept grows stays untested")
	}
	t.Parallel()
	testScale(t, scale.Parts()[len(scale.Parts())/2:])
}

func testScale(t *testing.T, parts []string) {
	file := filepath.Join(t.TempDir(), "scale.json")
	out, err := loadtest(t, "scale", "--quick", "--no-fail", "--only", strings.Join(parts, ","), "--json", file)
	if err != nil {
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
	for _, c := range r.Checks {
		if !c.OK() {
			t.Errorf("%s: %d of %d wrong: %q", c.Name, c.Wrong, c.Seen, c.Examples)
		}
	}
	for _, f := range r.Figures {
		if f.Low > f.Value || f.Value > f.High || f.Unit == "ratio" && f.Value <= 0 {
			t.Errorf("a figure that cannot be: %+v", f)
		}
	}
	u := r.Units
	if slices.Contains(parts, "units") && (u.Call <= 0 || u.LocalCall <= 0 || u.RemoteCall <= 0 || u.WorkerCall <= 0 || u.Wire < 1024 || u.WorkerWire < 1024 || u.Writes <= 0) {
		t.Errorf("units that cannot be: %+v\n%s", u, out)
	}
	if slices.Contains(parts, "agents") && (u.FleetCall <= 0 || u.Agent <= 0) {
		t.Errorf("units of agents that cannot be: %+v\n%s", u, out)
	}
}

// TestCrash is the short form of a run that needs a machine of its own. It mostly waits for
// the leases of killed shims.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts ten processes, and kills them")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "crash.json")
	out, err := loadtest(t, "crash", "--for", "8s", "--agents", "20", "--rate", "60", "--injections", "1000", "--json", file)
	t.Log(out)
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"broker", "worker", "driver", "daemon", "producer"} {
		if !slices.ContainsFunc(d.Plots[0].Marks, func(m report.Mark) bool { return m.Group == "kill of a "+kind }) {
			t.Errorf("no %s was killed", kind)
		}
	}
	for name, least := range map[string]int64{
		"every accepted message was delivered": 1000, "no message was delivered twice": 1000, "no message was delivered that was never accepted": 1000,
		"messages arrived in the order of their agent and source": 1000, "no message was delivered to another agent": 1000,
		"all receipts of a message agree": 1000, "no message was rejected": 1000, "the queue is empty at the end": 1,
		"every call that had to be denied was denied": 1, "no guarded call passed without its guard": 1,
	} {
		if c := d.Check(name); !c.OK() || c.Seen < least {
			t.Errorf("%+v", *c)
		}
	}
}

// TestState checks the answers of every part, not the times.
func TestState(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two dozen processes")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")
	_, err := loadtest(t, "state", "--quick", "--no-fail", "--json", file)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Report
	if err := schema.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Absolute {
		if s.P50 <= 0 || s.P99 < s.P50 || s.PerSecond <= 0 {
			t.Errorf("a figure that cannot be: %+v", s)
		}
	}
	if len(r.Rows) != 4*3+2 || len(r.Checks) != 3 || slices.ContainsFunc(r.Checks, func(c report.Check) bool { return !c.OK() }) {
		t.Errorf("a run that cannot be: %+v", r)
	}
}

// TestTheTablesOfAPageAreFilled puts what a run wrote into a page, and prints it.
func TestTheTablesOfAPageAreFilled(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	knee := report.Document{Scenario: "saturate", Figures: []report.Figure{report.Figured("knee: tools used", "/s", report.Higher, []float64{3300})}}
	if err := errors.Join(write(at("saturate.json"), &knee), os.WriteFile(at("page.md"), []byte("<!-- figures: knee -->\n<!-- end -->\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := loadtest(t, "tables", dir, "--into", at("page.md")); err != nil {
		t.Fatal(err)
	}
	if page, err := os.ReadFile(at("page.md")); err != nil || !strings.Contains(string(page), "| 3,300/s |") {
		t.Errorf("the page is %q, %v", page, err)
	}
	if out, err := loadtest(t, "tables", dir); err != nil || !strings.Contains(out, "## knee\n\n|  | value |") {
		t.Errorf("%v:\n%s", err, out)
	}
	if _, err := loadtest(t, "tables"); err == nil || exitCode(err) != 2 {
		t.Errorf("tables of nothing gave %v", err)
	}
}

// TestTheScenarioOfTheFiguresCanRun only reads the scenario, which takes ten minutes to
// run.
func TestTheScenarioOfTheFiguresCanRun(t *testing.T) {
	const file = "figures/faults.yaml"
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Read(file, body)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "faults" || s.For.Std() != 10*time.Minute || s.Soak.OfKnee != 0.7 || s.Wrong() != nil {
		t.Errorf("it is %+v: %v", s, s.Wrong())
	}
}

// TestModel calculates with the file of a scale run, and rejects other files.
func TestModel(t *testing.T) {
	out, err := loadtest(t, "model", "--agents", "2000000", "--calls-per-minute", "3")
	if err != nil || !strings.Contains(out, "2,000,000 agents") || !strings.Contains(out, "100,000/s") {
		t.Errorf("%v:\n%s", err, out)
	}
	if strings.Contains(out, "has no cost for") {
		t.Errorf("loadtest/figures/scale.json is of a run that did not measure all; run `make figures` again:\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(file, []byte(`{"scenario":"bench"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadtest(t, "model", "--units", file); err == nil || exitCode(err) != 1 {
		t.Errorf("the units of a bench gave %v", err)
	}
	if _, err := loadtest(t, "model", "--busy", "2"); err == nil || exitCode(err) != 2 {
		t.Errorf("machines that are busier than they can be gave %v", err)
	}
}

package field

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// TestMain lets the test program run as each of the processes.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "role" {
		if err := proc.Serve(context.Background(), roles.All()[os.Args[2]], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hooks deny one tool in the broker and another one in a pool of workers.
const hooks = `hooks:
  PreToolUse:
    - {name: here, matcher: Here, type: builtin, handler: deny, fail_closed: true}
    - {name: there, matcher: There, type: builtin, handler: deny, pool: crew, fail_closed: true, readonly: true, timeout: 3}
`

func opened(t *testing.T, c Config) *Field {
	t.Helper()
	c.Hooks = hooks
	f, err := Open(t.Context(), at(t, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// at returns the configuration with a folder and a crew.
func at(t *testing.T, c Config) Config {
	c.Dir, c.Crew = t.TempDir(), &proc.Crew{Args: []string{"role"}}
	c.WorkerRole, c.Worker = roles.HookWorker, func(at faults.At) any { return roles.WorkerConfig{NATS: at.NATS, Pool: "crew"} }
	return c
}

// denied asks until the tool is denied by its hook: the fabric may be coming back.
func denied(t *testing.T, f *Field, tool string) {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Options{URL: f.URL(), Name: "loadtest test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		v, err := c.Ask(ctx, &schema.Event{
			HookType: schema.PreToolUse, AgentID: "ann", SessionID: "s", Runtime: "generic", ToolName: tool, ToolInput: []byte(`{}`),
		})
		if err == nil && v.Decision != schema.Deny {
			t.Fatalf("the tool %s was not denied: %+v", tool, v)
		}
		if err == nil && len(v.HookErrors) == 0 {
			return
		}
		if !load.Pause(ctx, 20*time.Millisecond) {
			t.Fatalf("the tool %s was never denied by its hook: %+v, %v", tool, v, err)
		}
	}
}

func TestOneProcessIsAFabric(t *testing.T) {
	f := opened(t, Config{Kind: Embedded, Workers: 3})
	if got := f.Members(); !slices.Equal(got, []string{"broker-1"}) {
		t.Errorf("the members are %v", got)
	}
	denied(t, f, "Here")
}

func TestAFieldComesBackFromFaults(t *testing.T) {
	f := opened(t, Config{Kind: Local, Brokers: 2, Workers: 2, Server: true, Links: true})
	if got, want := f.Members(), []string{"server", "broker-1", "broker-2", "worker-1", "worker-2"}; !slices.Equal(got, want) {
		t.Fatalf("the members are %v", got)
	}
	if one, two := f.Member("worker-1").NATS, f.Member("worker-2").NATS; one == two || one == f.URL() || f.Member("server").NATS != f.URL() {
		t.Errorf("the ways are %s, %s and %s", one, two, f.URL())
	}
	short := schema.Duration(50 * time.Millisecond)
	for _, fault := range []faults.Fault{
		{Kind: faults.Kill, Member: "broker-1", For: 1},
		{Kind: faults.Kill, Member: "worker-1", For: 1},
		{Kind: faults.Stop, Member: "broker-2", For: short},
		{Kind: faults.Cut, Member: "worker-2", For: short},
		{Kind: faults.Reset, Member: "broker-1"},
		{Kind: faults.Kill, Member: "server", For: 1},
	} {
		if err := f.Fault(t.Context(), fault); err != nil {
			t.Fatal(err)
		}
		denied(t, f, "There")
		denied(t, f, "Here")
	}
	killed := f.Killed()
	for _, by := range []string{"broker-1.1", "worker-1.1", "server.1"} {
		if !killed[by] {
			t.Errorf("%s was killed, known are %v", by, killed)
		}
	}
	if len(killed) != 3 {
		t.Errorf("three were killed, not %v", killed)
	}
}

func TestTheProcessesOfAScenarioAreMembersToo(t *testing.T) {
	f := opened(t, Config{Kind: Local, Links: true})
	var at faults.At
	driver, err := f.Add(t.Context(), faults.Spec{Name: "driver-1", Role: roles.Requester, Config: func(now faults.At) any {
		at = now
		return roles.Places{NATS: now.NATS, Fabric: now.NATS}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if at.By != "driver-1.1" || at.NATS != driver.NATS || at.NATS == f.URL() {
		t.Errorf("it was started with %+v", at)
	}
	if _, err := f.Add(t.Context(), faults.Spec{Name: "driver-1"}); err == nil {
		t.Error("a second one of its name was taken")
	}
	target := roles.Target{Way: roles.Fabric, Tool: "Free"}
	if err := driver.Ask(t.Context(), roles.Request{Target: target}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Fault(t.Context(), faults.Fault{Kind: faults.Kill, Member: "driver-1", For: 1}); err != nil {
		t.Fatal(err)
	}
	if err := driver.Ask(t.Context(), roles.Request{Target: target}, nil); err != nil || at.By != "driver-1.2" {
		t.Errorf("the one in its place, %s, gave %v", at.By, err)
	}
	sane(t, f)
}

// sane checks the members' usage, on systems that report it.
func sane(t *testing.T, f *Field) {
	t.Helper()
	all := f.Usage()
	if _, ok := proc.UsageOf(os.Getpid()); !ok {
		if len(all) > 0 {
			t.Errorf("a system that tells nothing told %+v", all)
		}
		return
	}
	for _, m := range f.Members() {
		if u := all[m]; u.RSS < 1<<20 || u.Peak < u.RSS || u.Files < 3 || u.Threads < 1 || u.CPU <= 0 {
			t.Errorf("%s cannot take %+v", m, u)
		}
	}
}

func TestFaultsThatCanNotBeDone(t *testing.T) {
	f := opened(t, Config{Kind: Local})
	for name, c := range map[string]struct {
		fault faults.Fault
		want  string
	}{
		"to no member":             {faults.Fault{Kind: faults.Kill, Member: "worker-*"}, "only the processes broker-1"},
		"to a network that is not": {faults.Fault{Kind: faults.Reset, Member: "broker-1"}, "no link is in front"},
	} {
		if err := f.Fault(t.Context(), c.fault); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestAnotherKindOfFieldIsRefused(t *testing.T) {
	if _, err := Open(t.Context(), at(t, Config{Kind: "cloud"})); err == nil || !strings.Contains(err.Error(), "embedded, local or external") {
		t.Errorf("the error is %v", err)
	}
}

func TestAFieldWhoseHooksAreFaultyLeavesNothing(t *testing.T) {
	c := at(t, Config{Kind: Embedded, Hooks: "hocks: {}"})
	log, err := os.Create(c.Dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.Crew.Log = log
	if _, err := Open(t.Context(), c); err == nil {
		t.Fatal("a broker came up with a faulty file")
	}
	if said, _ := os.ReadFile(c.Dir + "/log"); !strings.Contains(string(said), "hocks") {
		t.Errorf("what it said is not in the log: %s", said)
	}
}

func TestAnExternalFabricIsLeftAlone(t *testing.T) {
	theirs := opened(t, Config{Kind: Embedded})
	url := theirs.URL()
	mine := Config{Kind: External, NATS: url, Hooks: hooks, Workers: 1, Links: true}
	f, err := Open(t.Context(), at(t, mine))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	denied(t, f, "There") // the test's own worker serves its pool
	err = f.Fault(t.Context(), faults.Fault{Kind: faults.Kill, Member: "broker-1"})
	if err == nil || !strings.Contains(err.Error(), "only the processes worker-1") {
		t.Errorf("killing a broker of others gave %v", err)
	}
	if err := f.Fault(t.Context(), faults.Fault{Kind: faults.Reset, Member: "worker-1"}); err != nil {
		t.Errorf("a fault to a worker of ours gave %v", err)
	}
	mine.Hooks = strings.Replace(hooks, "timeout: 3", "timeout: 4", 1)
	_, err = Open(t.Context(), at(t, mine))
	if err == nil || !strings.Contains(err.Error(), "there; the run changed nothing") || !strings.Contains(err.Error(), "`broker config rollback 1 --nats "+url+"`") {
		t.Fatalf("a fabric with another hook gave %v", err)
	}
	_, file, _ := strings.Cut(err.Error(), "broker apply ")
	file, _, _ = strings.Cut(file, " ")
	defer os.Remove(file)
	if body, err := os.ReadFile(file); err != nil || string(body) != mine.Hooks {
		t.Errorf("the file to apply holds %q, %v", body, err)
	}
}

func TestAServerWithoutAFabricSaysWhatToDo(t *testing.T) {
	theirs := opened(t, Config{Kind: Local, Server: true})
	if err := theirs.Member("broker-1").Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), at(t, Config{Kind: External, NATS: theirs.URL(), Hooks: hooks, Workers: 1}))
	if err == nil || !strings.Contains(err.Error(), "start a broker there") {
		t.Errorf("a server without a fabric gave %v", err)
	}
}

package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/schema"
)

func TestWhatComesAlongIsRight(t *testing.T) {
	names := strings.Join(Names(), " ")
	if names != "chaos cluster crash fleet overload saturate soak" {
		t.Errorf("there are %s", names)
	}
	for _, name := range Names() {
		s, err := Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		kind := Kind(name)
		if name == "crash" {
			kind = Chaotic
		}
		if s.Name != name || s.Kind != kind {
			t.Errorf("%s is called %s and does %s", name, s.Name, s.Kind)
		}
	}
	if _, err := Shipped("flood"); err == nil || !strings.Contains(err.Error(), "write one of chaos, cluster, crash, fleet, overload, saturate, soak") {
		t.Errorf("of one that does not come along it is said: %v", err)
	}
}

func TestTheFleetThatComesAlongIsTheDefault(t *testing.T) {
	s, err := Shipped(Fleet)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Default(), *s); d != "" {
		t.Error(d)
	}
}

func TestAWholeFile(t *testing.T) {
	s, err := Read("dir/busy.yaml", []byte(`
kind: fleet
fabric: {kind: external, nats: "nats://10.0.0.1:4222", creds: me.creds, workers: 4, slots: 128}
agents: 10_000
connections: 500
drivers: 4
arrivals: constant
steps:
  - {for: 10s, rate: 100/s}
  - {for: 20s, rate: 100, to: 900/s}
seed: 7
shares: {deny: 10%, rewrite: 0.02}
faults:
  - {kind: kill, member: worker-*, at: 2s, every: 5s}
  - {kind: delay, member: driver-1, at: 1s, for: 3s, latency: 50ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name, want.Agents, want.Connections, want.Drivers, want.Arrivals, want.Seed = "busy", 10_000, 500, 4, load.Constant, 7
	want.Fabric = Fabric{Kind: "external", NATS: "nats://10.0.0.1:4222", Creds: "me.creds", Brokers: 1, Workers: 4, Slots: 128}
	want.Steps = load.Curve{{For: seconds(10), Rate: 100, To: 100}, {For: seconds(20), Rate: 100, To: 900}}
	want.Rate, want.For = 0, seconds(30)
	want.Shares.Deny, want.Shares.Rewrite = 0.1, 0.02
	want.Faults = []faults.Fault{
		{Kind: faults.Kill, Member: "worker-*", At: seconds(2), Every: seconds(5)},
		{Kind: faults.Delay, Member: "driver-1", At: seconds(1), For: seconds(3), Latency: schema.Duration(50 * time.Millisecond)},
	}
	if d := cmp.Diff(want, *s); d != "" {
		t.Error(d)
	}
}

func TestThinkingIsARate(t *testing.T) {
	s, err := Read("a.yaml", []byte("agents: 50\nthink: 250ms\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.PerSecond(); got != 200 {
		t.Errorf("50 agents that think for 250 ms use tools %v times a second", got)
	}
}

func TestWhatAFileCanNotSay(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", `f.yaml:1:1: the file is empty; write kind: fleet`},
		"a word":             {"fleet", `f.yaml:1:1: this is "fleet" instead of a mapping; write some of agents, arrivals,`},
		"no YAML":            {"agents: [1", `f.yaml:2:1: this is not valid YAML: while parsing a flow sequence`},
		"two documents":      {"agents: 9\nconnections: 1\n---\nagents: 3\n", `a second document begins here; put everything into one document`},
		"a misspelled key":   {"agent: 9", `f.yaml:1:1: unknown key "agent"; write agents`},
		"an unknown key":     {"weather: 9", `f.yaml:1:1: unknown key "weather"; write one of agents, arrivals, chaos, cluster, connections,`},
		"a key twice":        {"seed: 9\nseed: 8", `f.yaml:2:1: the key "seed" occurs twice; remove one of them`},
		"a word as number":   {"agents: many", `f.yaml:1:9: "many" is not a whole number; write a whole number such as 200`},
		"a part of one":      {"agents: 1.5", `f.yaml:1:9: "1.5" is not a whole number`},
		"fewer than none":    {"agents: -4", `f.yaml:1:9: -4 is negative`},
		"no value":           {"agents:", `this is nothing instead of a value`},
		"a list as number":   {"agents: [1]", `f.yaml:1:9: this is a list instead of a value`},
		"no agents":          {"agents: 0", `f.yaml:1:9: the number of agents 0 is out of range; write at least 1`},
		"a time as number":   {"for: 30", `f.yaml:1:6: "30" has no unit; write 30s for seconds, or 30ms`},
		"no time":            {"for: soon", `f.yaml:1:6: "soon" is not a duration; write a duration with its unit, such as 500ms, 30s or 10m`},
		"a time ago":         {"for: -3s", `f.yaml:1:6: "-3s" is negative`},
		"too short":          {"for: 10ms", `f.yaml:1:6: a duration of 10ms is out of range; write at least 1s and at most 168h`},
		"a rate per minute":  {"rate: 300/m", `f.yaml:1:7: "300/m" is not valid here; write a rate per second, such as 300/s`},
		"no rate":            {"rate: 0", `f.yaml:1:7: the scenario has no rate of tool calls; write rate: 300/s, or think: 500ms, or steps`},
		"an endless rate":    {"rate: inf", `f.yaml:1:7: "inf" is not valid here`},
		"a share of more":    {"shares: {deny: 120%}", `f.yaml:1:16: "120%" is more than 100%; write a share from 0% to 100%`},
		"shares of more":     {"shares: {deny: 60%, rewrite: 60%}", `f.yaml:1:9: the shares sum to 172 % of all calls; reduce them`},
		"a low limit":        {"runaway: {agents: 1, limit: 2}", `f.yaml:1:10: the other agents send 3 events per second each, so a limit of 2 would also refuse theirs; write a higher limit`},
		"runaways in vain":   {"runaway: {agents: 1, limit: 20, times: 1}", `f.yaml:1:10: 1 agents cannot send 1 times the limit`},
		"a mapping":          {"shares: 5%", `f.yaml:1:9: this is "5%" instead of a mapping; write some of deny, inside,`},
		"another word":       {"arrivals: uniform", `f.yaml:1:11: unknown value "uniform"; write poisson or constant`},
		"another kind":       {"kind: fleets", `f.yaml:1:7: unknown value "fleets"; write fleet or saturate or overload`},
		"two loads":          {"rate: 3/s\nthink: 1s", `f.yaml:2:8: rate and think both set the rate of tool calls; remove one of them`},
		"steps and a time":   {"for: 3s\nsteps: [{for: 3s, rate: 4}]", `f.yaml:1:6: the steps already set it; remove for or the steps`},
		"no list":            {"steps: {for: 3s}", `f.yaml:1:8: this is a mapping instead of a list; begin each entry with a dash`},
		"a step of no time":  {"steps: [{rate: 4}, {for: 2s, rate: 4}]", `f.yaml:1:9: a step of 0s has no duration; write for: 10s`},
		"idle steps":         {"steps: [{for: 4s}]", `f.yaml:1:8: the steps give no tool call`},
		"few agents":         {"agents: 3\nconnections: 8", `f.yaml:2:14: the number of connections for 3 agents is 8; write at least 1 and at most 3`},
		"many drivers":       {"drivers: 9", `f.yaml:1:10: 8 connections cannot be divided among 9 drivers`},
		"endless drivers":    {"agents: 900\nconnections: 900\ndrivers: 900", `f.yaml:3:10: 900 connections cannot be divided among 900 drivers; write at least 1 and at most 200`},
		"hardly a rate":      {"rate: 0.01/s\nfor: 2s", `f.yaml:1:7: the rate gives no tool call in 2s; write a higher rate`},
		"hardly a thought":   {"think: 1ns", `f.yaml:1:8: 2e+11 tool calls per second are out of range; write a longer think`},
		"no workers":         {"fabric: {workers: 0}", `f.yaml:1:9: the number of workers 0 is out of range`},
		"nowhere":            {"fabric: {kind: external}", `f.yaml:1:9: the external fabric has no address; write nats: nats://HOST:PORT`},
		"two fabrics":        {"fabric: {nats: 'nats://x:1'}", `f.yaml:1:9: a fabric of the kind local starts its own server, so nats: nats://x:1 cannot apply`},
		"two brokers in one": {"fabric: {kind: embedded, brokers: 2}", "f.yaml:1:9: an embedded fabric is one process"},
		"neither":            {"fabric: {server: maybe}", `f.yaml:1:18: "maybe" is not true or false`},
		"a fault of a kind":  {"faults: [{kind: flood, member: x}]", `f.yaml:1:17: unknown value "flood"; write kill or stop or delay`},
		"a fault of nobody":  {"faults: [{kind: kill}]", `f.yaml:1:10: the fault names no member`},
		"a fault too late":   {"faults: [{kind: kill, member: x, at: 1h}]", `f.yaml:1:10: the fault is at 1h0m0s, after the end of the run; write at: less than 30s`},
		"a knee of nothing":  {"kind: saturate\nknee: {from: 5, most: 2}", `f.yaml:2:7: the range of rates from 5/s to 2/s is invalid`},
		"much text":          {"#" + strings.Repeat("x", mostBytes), `f.yaml:1:1: the file is too long; a scenario has at most 1048576`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("f.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is said: %v\nwant:       %s", err, c.want)
			}
		})
	}
}

func TestAllFaultsAreSaidAtOnceInTheirOrder(t *testing.T) {
	_, err := Read("f.yaml", []byte("agents: many\nfor: 3\nshares:\n  deny: 5%\n  rewrit: 1%\nweather: fine\n"))
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	want := []string{"f.yaml:1:9:", "f.yaml:2:6:", "f.yaml:5:3:", "f.yaml:6:1:"}
	at := 0
	for _, w := range want {
		i := strings.Index(err.Error()[at:], w)
		if i < 0 {
			t.Fatalf("it lacks %s after the ones before:\n%v", w, err)
		}
		at += i
	}
	if !strings.Contains(err.Error(), `unknown key "rewrit"; write rewrite`) {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range Names() {
		body, err := files.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body))
	}
	f.Add("steps: [{for: 3s, rate: 4}]\nfaults: [{kind: kill, member: x}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("f.yaml", []byte(text))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if s != nil && len(s.Check()) > 0 {
			t.Fatalf("it is not right after all: %v", s.Check())
		}
	})
}

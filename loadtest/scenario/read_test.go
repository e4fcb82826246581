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
	if names != "chaos fleet overload saturate soak" {
		t.Errorf("there are %s", names)
	}
	for _, name := range Names() {
		s, err := Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != name || s.Kind != name {
			t.Errorf("%s is called %s and does %s", name, s.Name, s.Kind)
		}
	}
	if _, err := Shipped("flood"); err == nil || !strings.Contains(err.Error(), "there are chaos, fleet, overload, saturate, soak") {
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
		"nothing":            {"", `f.yaml:1:1: the file says nothing; write kind: fleet`},
		"a word":             {"fleet", `f.yaml:1:1: this is "fleet" where a mapping is due; write some of agents, arrivals,`},
		"no YAML":            {"agents: [1", `f.yaml:2:1: this is no YAML: while parsing a flow sequence`},
		"two documents":      {"agents: 9\nconnections: 1\n---\nagents: 3\n", `a second document begins here; put everything into one document`},
		"a misspelled key":   {"agent: 9", `f.yaml:1:1: there is no key "agent" here; write agents`},
		"an unknown key":     {"weather: 9", `f.yaml:1:1: there is no key "weather" here; write one of agents, arrivals, chaos, connections,`},
		"a key twice":        {"seed: 9\nseed: 8", `f.yaml:2:1: the key "seed" stands here a second time; take one of them away`},
		"a word as number":   {"agents: many", `f.yaml:1:9: "many" is no whole number; write a whole number such as 200`},
		"a part of one":      {"agents: 1.5", `f.yaml:1:9: "1.5" is no whole number`},
		"fewer than none":    {"agents: -4", `f.yaml:1:9: -4 is less than nothing`},
		"no value":           {"agents:", `this is nothing where a value is due`},
		"a list as number":   {"agents: [1]", `f.yaml:1:9: this is a list where a value is due`},
		"no agents":          {"agents: 0", `f.yaml:1:9: there can not be 0 agents; write at least 1`},
		"a time as number":   {"for: 30", `f.yaml:1:6: "30" has no unit; write 30s for seconds, or 30ms`},
		"no time":            {"for: soon", `f.yaml:1:6: "soon" is no time; write a time with its unit, such as 500ms, 30s or 10m`},
		"a time ago":         {"for: -3s", `f.yaml:1:6: "-3s" is before it begins`},
		"too short":          {"for: 10ms", `f.yaml:1:6: 10ms can not be measured; write at least 1s and at most 168h`},
		"a rate per minute":  {"rate: 300/m", `f.yaml:1:7: "300/m" is not what is due here; write how often per second, such as 300/s`},
		"no rate":            {"rate: 0", `f.yaml:1:7: nothing says how often tools are used; write rate: 300/s, or think: 500ms, or steps`},
		"an endless rate":    {"rate: inf", `f.yaml:1:7: "inf" is not what is due here`},
		"a share of more":    {"shares: {deny: 120%}", `f.yaml:1:16: "120%" is more than all of them; write a share from 0% to 100%`},
		"shares of more":     {"shares: {deny: 60%, rewrite: 60%}", `f.yaml:1:9: the shares come to 172 % of all calls; take some away`},
		"a low limit":        {"runaway: {agents: 1, limit: 2}", `f.yaml:1:10: the others ask 3 times a second each, and with a limit of 2 would be refused, too; write a higher limit`},
		"runaways in vain":   {"runaway: {agents: 1, limit: 20, times: 1}", `f.yaml:1:10: 1 agents can not ask 1 times as often`},
		"a mapping":          {"shares: 5%", `f.yaml:1:9: this is "5%" where a mapping is due; write some of deny, inside,`},
		"another word":       {"arrivals: uniform", `f.yaml:1:11: "uniform" is none of the words for this; write poisson or constant`},
		"another kind":       {"kind: fleets", `f.yaml:1:7: "fleets" is none of the words for this; write fleet or saturate or overload`},
		"two loads":          {"rate: 3/s\nthink: 1s", `f.yaml:2:8: both rate and think say how often tools are used; take one of them away`},
		"steps and a time":   {"for: 3s\nsteps: [{for: 3s, rate: 4}]", `f.yaml:1:6: the steps say that already; take for away, or the steps`},
		"no list":            {"steps: {for: 3s}", `f.yaml:1:8: this is a mapping where a list is due; begin each entry with a dash`},
		"a step of no time":  {"steps: [{rate: 4}, {for: 2s, rate: 4}]", `f.yaml:1:9: a step takes some time, not 0s; write for: 10s`},
		"idle steps":         {"steps: [{for: 4s}]", `f.yaml:1:8: no tool is ever used`},
		"few agents":         {"agents: 3\nconnections: 8", `f.yaml:2:14: 3 agents can not share 8 connections; write at least 1 and at most 3`},
		"many drivers":       {"drivers: 9", `f.yaml:1:10: 8 connections can not be spread over 9 processes`},
		"endless drivers":    {"agents: 900\nconnections: 900\ndrivers: 900", `f.yaml:3:10: 900 connections can not be spread over 900 processes; write at least 1 and at most 200`},
		"hardly a rate":      {"rate: 0.01/s\nfor: 2s", `f.yaml:1:7: in 2s no tool is ever used; write a higher rate`},
		"hardly a thought":   {"think: 1ns", `f.yaml:1:8: tools can not be used 2e+11 times a second; have agents think for longer`},
		"no workers":         {"fabric: {workers: 0}", `f.yaml:1:9: there can not be 0 workers`},
		"nowhere":            {"fabric: {kind: external}", `f.yaml:1:9: nothing says where the external fabric is; write nats: nats://HOST:PORT`},
		"two fabrics":        {"fabric: {nats: 'nats://x:1'}", `f.yaml:1:9: a fabric of the kind local has a server of its own, not nats://x:1`},
		"two brokers in one": {"fabric: {kind: embedded, brokers: 2}", "f.yaml:1:9: an embedded fabric is one process"},
		"neither":            {"fabric: {server: maybe}", `f.yaml:1:18: "maybe" is neither true nor false`},
		"a fault of a kind":  {"faults: [{kind: flood, member: x}]", `f.yaml:1:17: "flood" is none of the words for this; write kill or stop or delay`},
		"a fault of nobody":  {"faults: [{kind: kill}]", `f.yaml:1:10: the fault names no member`},
		"a fault too late":   {"faults: [{kind: kill, member: x, at: 1h}]", `f.yaml:1:10: the fault is at 1h0m0s, when the run is over; write at: less than 30s`},
		"a knee of nothing":  {"kind: saturate\nknee: {from: 5, most: 2}", `f.yaml:2:7: rates can not be tried from 5/s to 2/s`},
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
	if !strings.Contains(err.Error(), `there is no key "rewrit" here; write rewrite`) {
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

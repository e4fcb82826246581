package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
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
agents: 10000
connections: 500
drivers: 4
rate: 900/s
for: 20s
seed: 7
shares: {deny: 10%, rewrite: 0.02}
faults:
  - {kind: kill, member: worker-*, at: 2s}
  - {kind: delay, member: driver-1, at: 1s, for: 3s, latency: 50ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name, want.Agents, want.Connections, want.Drivers, want.Seed = "busy", 10_000, 500, 4, 7
	want.Fabric = Fabric{Kind: "external", NATS: "nats://10.0.0.1:4222", Creds: "me.creds", Brokers: 1, Workers: 4, Slots: 128}
	want.Rate, want.For = 900, seconds(20)
	want.Shares.Deny, want.Shares.Rewrite = 0.1, 0.02
	want.Faults = []faults.Fault{
		{Kind: faults.Kill, Member: "worker-*", At: seconds(2)},
		{Kind: faults.Delay, Member: "driver-1", At: seconds(1), For: seconds(3), Latency: schema.Duration(50 * time.Millisecond)},
	}
	if d := cmp.Diff(want, *s); d != "" {
		t.Error(d)
	}
}

func TestWhatAFileCanNotSay(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", `f.yaml: `},
		"a word":             {"fleet", `f.yaml: `},
		"no YAML":            {"agents: [1", `flow sequence`},
		"two documents":      {"agents: 9\nconnections: 1\n---\nagents: 3\n", `document`},
		"a misspelled key":   {"agent: 9", `f.yaml: unknown key "agent"`},
		"a key of a mapping": {"shares: {rewrit: 1%}", `unknown key "shares.rewrit"`},
		"a key twice":        {"seed: 9\nseed: 8", `"seed"`},
		"a word as number":   {"agents: many", `f.yaml: agents: a string is not valid here; write a value of the type int`},
		"a part of one":      {"agents: 1.5", `agents: `},
		"fewer than none":    {"agents: -4", `agents: -4 is out of range; write 1 to 1000000`},
		"a seed below 0":     {"seed: -4", `seed: `},
		"a list as number":   {"agents: [1]", `agents: `},
		"a time as number":   {"for: 30", `for: `},
		"no time":            {"for: soon", `"soon" is not a duration`},
		"a time ago":         {"for: -3s", `for: -3s is out of range`},
		"too short":          {"for: 10ms", `for: 10ms is out of range; write 1s to 168h0m0s`},
		"a rate per minute":  {"rate: 300/m", `rate: a string is not valid here`},
		"no rate":            {"rate: 0", `rate: 0 tool calls per second are out of range`},
		"an endless rate":    {"rate: .inf", `f.yaml: `},
		"endless text":       {"rate: inf/s", `rate: a string is not valid here`},
		"a share of more":    {"shares: {deny: 120%}", `shares.deny: 1.2 is out of range; write 0 to 1`},
		"a share of less":    {"shares: {deny: -1%}", `shares.deny: -0.01 is out of range`},
		"shares of more":     {"shares: {deny: 60%, rewrite: 60%}", `the shares sum to 172 % of all calls; reduce them`},
		"a low limit":        {"runaway: {agents: 1, limit: 2}", `the other agents send 3 events per second each, so a limit of 2 would also refuse theirs; write a higher limit`},
		"runaways in vain":   {"runaway: {agents: 1, limit: 20, times: 1}", `1 agents cannot send 1 times the limit`},
		"a mapping":          {"shares: 5%", `shares: `},
		"another kind":       {"kind: fleets", `unknown kind "fleets"; write one of [fleet saturate overload`},
		"few agents":         {"agents: 3\nconnections: 8", `connections: 8 is out of range; write 1 to 3`},
		"many drivers":       {"drivers: 9", `8 connections cannot be divided among 9 drivers`},
		"endless drivers":    {"agents: 900\nconnections: 900\ndrivers: 900", `900 connections cannot be divided among 900 drivers; write 1 to 200`},
		"hardly a rate":      {"rate: 0.01/s\nfor: 2s", `the rate gives no tool call in 2s; write a higher rate`},
		"no workers":         {"fabric: {workers: 0}", `fabric.workers: 0 is out of range`},
		"nowhere":            {"fabric: {kind: external}", `the external fabric has no address; write nats: nats://HOST:PORT`},
		"two fabrics":        {"fabric: {nats: 'nats://x:1'}", `a fabric of the kind local starts its own server, so nats: nats://x:1`},
		"two brokers in one": {"fabric: {kind: embedded, brokers: 2}", "an embedded fabric is one process"},
		"neither":            {"fabric: {server: maybe}", `fabric.server: a string is not valid here; write a value of the type bool`},
		"a fault of a kind":  {"faults: [{kind: flood, member: x}]", `unknown kind of fault "flood"; write one of [kill`},
		"a fault of nobody":  {"faults: [{kind: kill}]", `faults.1: the fault names no member`},
		"a fault too late":   {"faults: [{kind: kill, member: x, at: 1h}]", `the fault is at 1h0m0s, after the end of the run; write at: less than 30s`},
		"a knee of nothing":  {"kind: saturate\nknee: {from: 5, most: 2}", `the range of rates from 5/s to 2/s is invalid`},
		"much text":          {"#" + strings.Repeat("x", mostBytes), `the file is too long; a scenario has at most 1048576`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("f.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is said: %v\nwant:       %s", err, c.want)
			}
		})
	}
}

func TestAllProblemsAreSaidAtOnce(t *testing.T) {
	_, err := Read("f.yaml", []byte("agents: 0\nfor: 3ms\nshares: {deny: 5}\n"))
	for _, want := range []string{"agents: 0", "for: 3ms", "shares.deny: 5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it lacks %s:\n%v", want, err)
		}
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
	f.Add("rate: 4\nfaults: [{kind: kill, member: x}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("f.yaml", []byte(text))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if s != nil && s.Wrong() != nil {
			t.Fatalf("it is not right after all: %v", s.Wrong())
		}
	})
}

package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/schema"
)

// shipped returns a bundled scenario.
func shipped(t *testing.T, name string) *Scenario {
	t.Helper()
	s, err := Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatCanGoWrong(t *testing.T) {
	s := shipped(t, Chaotic)
	want := []string{"server", "broker-1", "broker-2", "worker-1", "worker-2", "worker-3", "driver-1", "driver-2", "producer-1"}
	if got := s.Members(); !slices.Equal(got, want) {
		t.Errorf("the members are %v", got)
	}
	if s.HasLink("server") || !s.HasLink("broker-1") {
		t.Error("all but the server reach it by a network")
	}
	s.Fabric.Server = false
	if s.HasLink("broker-1") || !s.HasLink("broker-2") {
		t.Error("the first broker has the server in itself, and all others reach it by a network")
	}
	s.Fabric.Kind, s.Injections = field.External, 0
	if got := s.Members(); !slices.Equal(got, want[3:8]) {
		t.Errorf("of an external fabric the members are %v", got)
	}
}

func TestWhatNoChaosAndNoSoakCanBe(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		spoil func(*Scenario)
		want  string
	}{
		"a kind that there is not": {Chaotic, func(s *Scenario) { s.Chaos.Kinds = []faults.Kind{"flood"} }, "unknown kind of fault"},
		"a member that is not":     {Chaotic, func(s *Scenario) { s.Chaos.Members = []string{"cat-*"} }, "no member has the name"},
		"no room for faults":       {Chaotic, func(s *Scenario) { s.For = schema.Duration(time.Second) }, "too short for faults"},
		"no pause":                 {Chaotic, func(s *Scenario) { s.Chaos.Pause = 0 }, "pause above 0"},
		"faults beyond a deadline": {Chaotic, func(s *Scenario) { s.Deadline = schema.Duration(time.Second) }, "for longer than the deadline 1s"},
		"brokers that are not ours": {Chaotic, func(s *Scenario) {
			s.Fabric.Kind, s.Fabric.NATS, s.Chaos.Members = field.External, "nats://a:1", []string{"broker-1"}
		}, "no member has the name"},
		"no rate":                        {Chaotic, func(s *Scenario) { s.Rate = 0 }, "0 tool calls per second are out of range"},
		"a fault to nobody":              {Fleet, func(s *Scenario) { s.Faults = []faults.Fault{{Kind: faults.Kill, Member: "cat"}} }, "no member has the name"},
		"a network that is not":          {Fleet, func(s *Scenario) { s.Faults = []faults.Fault{{Kind: faults.Reset, Member: "broker-*"}} }, "broker-1 has no network to the server"},
		"a soak too short":               {Soaking, func(s *Scenario) { s.For = schema.Duration(12 * time.Second) }, "write at least 40s"},
		"a soak too short with kills":    {Soaking, func(s *Scenario) { s.For, s.Soak.Chaos = schema.Duration(time.Minute), true }, "write at least 1m10s"},
		"a soak that settles too seldom": {Soaking, func(s *Scenario) { s.For, s.Soak.Settle = seconds(60), seconds(4) }, "write at least 1m20s"},
		"a soak at no part of the knee":  {Soaking, func(s *Scenario) { s.Soak.OfKnee = math.NaN() }, "NaN %"},
		"a soak beyond the knee":         {Soaking, func(s *Scenario) { s.Soak.OfKnee = 1.2 }, "120 %"},
		"a soak of others' processes":    {Soaking, func(s *Scenario) { s.Fabric.Kind, s.Fabric.NATS = field.External, "nats://a:1" }, "cannot measure the processes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shipped(t, c.kind)
			c.spoil(s)
			if got := fmt.Sprint(s.Wrong()); !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

func TestChaosIsRead(t *testing.T) {
	s, err := Read("wild.yaml", []byte(`
kind: chaos
deadline: 30s
chaos: {kinds: [kill, cut], members: ["worker-*", driver-1], together: 2, longest: 1s, pause: 500ms, quiet: 5s}
soak: {settle: 3s, chaos: true, of_knee: 70%}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Chaos{
		Kinds: []faults.Kind{faults.Kill, faults.Cut}, Members: []string{"worker-*", "driver-1"}, Together: 2,
		Longest: seconds(1), Pause: schema.Duration(500 * time.Millisecond), Quiet: seconds(5),
	}
	if d := cmp.Diff(want, s.Chaos); d != "" {
		t.Error(d)
	}
	if s.Soak != (Soak{Settle: seconds(3), Chaos: true, OfKnee: 0.7}) {
		t.Errorf("%+v", s.Soak)
	}
	if _, err := Read("wild.yaml", []byte("kind: chaos\nchaos: {kinds: [kil]}\n")); err == nil || !strings.Contains(err.Error(), `unknown kind of fault "kil"`) {
		t.Errorf("a misspelt kind gave %v", err)
	}
}

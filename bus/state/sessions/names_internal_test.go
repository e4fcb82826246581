package sessions

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzParseLabel holds that what is accepted is a name that can be a folder's
// and a number, written in the only way.
func FuzzParseLabel(f *testing.F) {
	for _, s := range []string{"", "agent2.1", "agent2", "agent2.", ".1", "a.b.1", "agent2.01", "agent2.-1", "agent2.1000001", "../x.1", "a b.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, label string) {
		name, number, err := parseLabel(label)
		switch {
		case err != nil && !errors.Is(err, ErrInvalid):
			t.Error(err)
		case err == nil && label == "" && (name != "" || number != 0):
			t.Errorf("nothing is %q, %d", name, number)
		case err == nil && label != "" && (fmt.Sprintf("%s.%d", name, number) != label || number < 1 || strings.ContainsAny(name, "./\\ ")):
			t.Errorf("%q is %q, %d", label, name, number)
		}
	})
}

// TestNamesAreStableAndBelongToOne names answers in any order.
func TestNamesAreStableAndBelongToOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var r roll
		names, owner, answers := map[string]string{}, map[string]string{}, map[string]int{}
		for range rapid.IntRange(1, 40).Draw(rt, "answers") {
			agent := rapid.SampledFrom([]string{"x", "y", "agent1"}).Draw(rt, "agent")
			label := rapid.SampledFrom([]string{"", "agent1.1", "agent2.3", "AGENT2.1", "writer.2", "agent3.1"}).Draw(rt, "label")
			name, number, err := parseLabel(label)
			if err != nil {
				rt.Fatal(err)
			}
			before := fmt.Sprint(r)
			m, changed, err := r.name(member{Agent: agent, Name: name, Answers: number}, func(id string) bool { return id == "agent2" })
			if err != nil {
				// Refused only if the name is another's, or the agent has another one.
				other, taken := owner[strings.ToLower(name)]
				if !errors.Is(err, ErrTaken) || (!taken || other == agent) && names[agent] == "" || names[agent] == name || fmt.Sprint(r) != before {
					rt.Fatalf("%s as %q: %v", agent, label, err)
				}
				continue
			}
			if known := names[agent]; known != "" && known != m.Name || label != "" && (m.Name != name || m.Answers != number) || label == "" && m.Answers != answers[agent]+1 {
				rt.Fatalf("%s as %q is %+v; its name was %q, its answers %d", agent, label, m, known, answers[agent])
			}
			if label == "" && names[agent] == "" && (m.Name == "agent2" || m.Name == agent) {
				rt.Fatalf("%s is called %s, which is the id of an agent", agent, m.Name)
			}
			if other, taken := owner[strings.ToLower(m.Name)]; taken && other != agent {
				rt.Fatalf("%s and %s are both called %s", agent, other, m.Name)
			}
			if changed != (fmt.Sprint(r) != before) {
				rt.Fatalf("changed: %v", changed)
			}
			names[agent], owner[strings.ToLower(m.Name)], answers[agent] = m.Name, agent, max(answers[agent], m.Answers)
		}
	})
}

// noAgent is a session in which no agent was seen that gave no answer.
func noAgent(string) bool { return false }

// An agent must not have the name that replaces another agent's id.
func TestTheNameForAnAgentWithThatIDIsNotAnothers(t *testing.T) {
	for _, names := range [][2]string{{"agent1", "peer-Agent1"}, {"peer-agent1", "agent1"}} {
		var r roll
		if _, _, err := r.name(member{Agent: "x", Name: names[0], Answers: 1}, noAgent); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.name(member{Agent: "y", Name: names[1], Answers: 1}, noAgent); !errors.Is(err, ErrTaken) {
			t.Errorf("beside %s the name %s is given: %v", names[0], names[1], err)
		}
	}
}

func TestASessionHasOnlySoManyAgents(t *testing.T) {
	var r roll
	for i := range MaxAgents {
		m, _, err := r.name(member{Agent: fmt.Sprint(i)}, noAgent)
		if want := fmt.Sprint("agent", i+1); err != nil || m.Name != want || m.Answers != 1 {
			t.Fatalf("%+v, %v; want %s", m, err, want)
		}
	}
	if _, _, err := r.name(member{Agent: "one more"}, noAgent); !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
	if m, _, err := r.name(member{Agent: "7"}, noAgent); err != nil || m.Answers != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, _, err := r.name(member{Agent: "7", Name: "agent8", Answers: maxAnswer}, noAgent); err != nil {
		t.Error(err)
	}
	if _, _, err := r.name(member{Agent: "7"}, noAgent); !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
}

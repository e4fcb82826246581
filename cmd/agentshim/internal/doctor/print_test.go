package doctor

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// The report claims nothing that no test call showed.
func TestTheDoctorClaimsOnlyWhatItTried(t *testing.T) {
	judged, answered := &Canary{Judged: true}, &Canary{}
	runtime := func(label string, c *Canary) Runtime { return Runtime{Label: label, Connected: true, Canary: c} }
	for name, c := range map[string]struct {
		all  []Runtime
		want string
	}{
		"all were tried":         {[]Runtime{runtime("Claude Code", judged), {Label: "Codex"}}, "ok       the agent runtimes here enforce the fabric's decisions"},
		"one was not":            {[]Runtime{runtime("Claude Code", judged), runtime("Codex", nil)}, "ok       doctor found no problem, but no test call proved that the fabric judges calls of Codex; the notes say why"},
		"of two it is not known": {[]Runtime{runtime("Codex", nil), runtime("Claude Code", answered)}, "calls of Codex, Claude Code; the notes"},
		"none is connected":      {[]Runtime{{Label: "Codex"}}, "no agent runtime of this machine is connected"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			r := &Report{Enforced: true, Runtimes: c.all}
			if err := r.Print(&said); err != nil || !strings.Contains(said.String(), c.want) || strings.Contains(said.String(), "enforce the fabric") != (name == "all were tried") {
				t.Errorf("%v\n%s", err, &said)
			}
		})
	}
}

// TestTheLastLineSaysWhatTheDoctorKnows checks that the doctor does not call a runtime faulty because it
// could not reach the fabric or sent no test call.
func TestTheLastLineSaysWhatTheDoctorKnows(t *testing.T) {
	connected := Runtime{Label: "Claude Code", Connected: true}
	untrusted, faulty := connected, connected
	untrusted.notTried("the project's hook has flags of its own")
	faulty.problem("the program is missing")
	for name, c := range map[string]struct {
		all     []Runtime
		reached bool
		want    string
	}{
		"the fabric is not reachable":         {[]Runtime{connected}, false, "doctor could not check whether the agent runtimes here enforce the fabric's decisions"},
		"no test call":                        {[]Runtime{untrusted}, true, "doctor could not check whether"},
		"neither":                             {[]Runtime{untrusted}, false, "doctor could not check whether"},
		"a fault":                             {[]Runtime{untrusted, faulty}, false, "the agent runtimes here do not enforce all decisions"},
		"not reachable and nothing connected": {[]Runtime{{Label: "Codex"}}, false, "doctor cannot reach the fabric; no agent runtime of this machine is connected to it"},
		"not reachable and nothing installed": {nil, false, "no agent runtime of this machine is connected to it"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			r := &Report{Runtimes: c.all, Bus: Bus{Reached: c.reached}}
			err := r.Print(&said)
			lines := strings.Split(strings.TrimSpace(said.String()), "\n")
			if last := lines[len(lines)-1]; err != nil || !strings.HasPrefix(last, "PROBLEM  ") || !strings.Contains(last, c.want) {
				t.Errorf("%v: the last line is %q", err, last)
			}
			if says := strings.Contains(said.String(), "saw no agent"); says != c.reached {
				t.Errorf("the report names the agents that the fabric saw: %v", says)
			}
		})
	}
}

// TestTheReportSaysWhereTheDoctorLooked checks that a user who runs doctor outside of a project learns that
// doctor does not look for projects elsewhere.
func TestTheReportSaysWhereTheDoctorLooked(t *testing.T) {
	all := Runtime{Label: "Claude Code", Connected: true, Canary: &Canary{Judged: true}}
	for name, c := range map[string]struct {
		folder string
		all    []Runtime
		want   string
	}{
		"no runtime":           {"/p", nil, "of the project in /p; to check another project, run doctor in its folder"},
		"one is not connected": {"/p", []Runtime{all, {Label: "Codex"}}, "of the project in /p;"},
		"no folder":            {"", nil, "the current folder is unknown"},
		"all are connected":    {"/p", []Runtime{all}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			r := &Report{Enforced: true, Runtimes: c.all, folder: c.folder}
			err := r.Print(&said)
			if err != nil || !strings.Contains(said.String(), c.want) || strings.Contains(said.String(), "doctor read") == (c.want == "") {
				t.Errorf("%v\n%s", err, &said)
			}
		})
	}
}

// TestTheTableOfAgentsHasOneCellForEachName checks that the table quotes a name only if it could look like two.
func TestTheTableOfAgentsHasOneCellForEachName(t *testing.T) {
	var said strings.Builder
	r := &Report{Bus: Bus{Reached: true}, Agents: []schema.AgentStatus{
		{Agent: "claude-5", Runtime: "claude", Version: "2.1.295"}, {Agent: "a b"}, {Agent: "c\n\x1b[2Jd"}}}
	if err := r.Print(&said); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(said.String(), "SILENT")
	lines := strings.Split(table, "\n")
	for i, want := range []string{`RUNTIME  VERSION  AGENT`, `0s      claude   2.1.295  claude-5`, `0s                        "a b"`, `0s                        "c\n\x1b[2Jd"`} {
		if i >= len(lines) || strings.TrimSpace(lines[i]) != want {
			t.Errorf("line %d of the table is not %q:\n%s", i, want, table)
		}
	}
}

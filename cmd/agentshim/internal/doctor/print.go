package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// Print writes a report for people.
func (r *Report) Print(w io.Writer) error {
	p := &printer{w: w}
	p.fabric(r)
	var apart, untried []string
	connected, faulty := false, false
	for i := range r.Runtimes {
		t := &r.Runtimes[i]
		connected = connected || t.Connected
		faulty = faulty || len(t.Problems) > t.unchecked
		if t.Connected || len(t.Problems) > 0 {
			p.runtime(t)
			if t.Canary == nil || !t.Canary.Judged {
				untried = append(untried, t.Label)
			}
		} else {
			apart = append(apart, fmt.Sprintf("%s (%s)", t.Label, t.Runtime))
		}
	}
	if len(r.Runtimes) == 0 {
		p.say("", "doctor found no agent runtime on this machine")
	}
	if len(apart) > 0 {
		p.say("\nnote     ", fmt.Sprintf("not connected to the fabric: %s; run 'agentshim install RUNTIME' to connect one", strings.Join(apart, ", ")))
	}
	if len(apart) > 0 || !connected {
		p.say("note     ", r.looked())
	}
	if r.Bus.Reached && r.Bus.Hidden == "" {
		p.agents(r.Agents)
	}
	switch {
	case r.Enforced && !connected:
		p.say("\nok       ", "the fabric answers; no agent runtime of this machine is connected to it")
	case r.Enforced && len(untried) > 0:
		p.say("\nok       ", fmt.Sprintf("doctor found no problem, but no test call proved that the fabric judges calls of %s; the notes say why", strings.Join(untried, ", ")))
	case r.Enforced:
		p.say("\nok       ", "the agent runtimes here enforce the fabric's decisions")
	case faulty:
		p.say("\nPROBLEM  ", "the agent runtimes here do not enforce all decisions of the fabric; the lines with PROBLEM say why")
	case connected:
		p.say("\nPROBLEM  ", "doctor could not check whether the agent runtimes here enforce the fabric's decisions; the lines with PROBLEM say why")
	default:
		p.say("\nPROBLEM  ", "doctor cannot reach the fabric; no agent runtime of this machine is connected to it")
	}
	return p.err
}

// looked names the projects whose configurations the doctor read, and says that it looks for no others.
func (r *Report) looked() string {
	if r.folder == "" {
		return "doctor read the configurations of this user and of this machine; the current folder is unknown, so it read none of a project"
	}
	return fmt.Sprintf("doctor read the configurations of this user, of this machine, and of the project in %s; to check another project, run doctor in its folder", r.folder)
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(word, text string) {
	if _, err := fmt.Fprintf(p.w, "%s%s\n", word, schema.Visible(text)); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) fabric(r *Report) {
	p.say("host     ", fmt.Sprintf("%s, agentshim %s", r.Host, r.Release))
	if b := r.Bus; b.Reached {
		p.say("bus      ", fmt.Sprintf("%s, fabric %s, configuration %d with %d hooks, in %s", b.URL, b.Fabric, b.ConfigVersion, b.Hooks, time.Duration(b.Took)))
	} else {
		p.say("PROBLEM  ", fmt.Sprintf("doctor cannot reach the fabric at %s: %s", b.URL, b.Why))
	}
	if r.Bus.Hidden != "" {
		p.say("note     ", r.Bus.Hidden)
	}
	if d := r.Daemon; d.Running {
		p.say("daemon   ", fmt.Sprintf("%s, %d calls, asks the fabric at %s", d.Socket, d.Calls, d.NATS))
	} else {
		p.say("daemon   ", "none; each hook connects to the fabric itself, which takes longer; run 'agentshim serve' to start one")
	}
	if k := r.Policy; k.Known {
		p.say("policy   ", fmt.Sprintf("version %d, received %s ago; hooks that guard calls even while the fabric does not answer: %d", k.ConfigVersion, rough(k.Age), k.Guards))
		if k.Fabrics > 1 {
			p.say("note     ", fmt.Sprintf("%d fabrics answered at that URL; the guards of all of them count until 'agentshim policy reset'", k.Fabrics))
		}
	} else {
		p.say("policy   ", fmt.Sprintf("none stored for the time when the fabric does not answer: %s", k.Why))
	}
}

func (p *printer) runtime(t *Runtime) {
	p.say("\n", fmt.Sprintf("%s (%s) %s, %s", t.Label, t.Runtime, cmp.Or(t.Version, "version unknown"), cmp.Or(t.Program, "not on the PATH")))
	for _, l := range t.Layers {
		asks := "does not ask the fabric"
		if len(l.Events) > 0 {
			asks = fmt.Sprintf("asks at %s", strings.Join(l.Events, ", "))
		}
		p.say("  file     ", fmt.Sprintf("%s (%s): %s", l.Path, l.Scope, asks))
	}
	if c := t.Canary; c != nil && c.Judged {
		p.say("  tried    ", fmt.Sprintf("the fabric judged a test call at %s, in %s", c.Event, time.Duration(c.Took)))
	}
	for _, text := range t.Problems {
		p.say("  PROBLEM  ", text)
	}
	for _, text := range t.Hints {
		p.say("  note     ", text)
	}
	if len(t.Cannot) > 0 {
		p.say("  cannot   ", strings.Join(t.Cannot, ", "))
	}
}

func (p *printer) agents(all []schema.AgentStatus) {
	if len(all) == 0 {
		p.say("\nagents   ", "the fabric saw no agent of this host in the last day")
		return
	}
	p.say("", "")
	t := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SILENT\tRUNTIME\tVERSION\tAGENT")
	for _, a := range all {
		silent := rough(a.Silent)
		if a.Ended {
			silent = "ended"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", silent, cell(a.Runtime), cell(a.Version), cell(a.Agent))
	}
	if err := t.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

// cell returns a name that an agent chose as one cell of a table, quoted if it could look like two.
func cell(s string) string {
	if q := strconv.Quote(s); s != "" && (q[1:len(q)-1] != s || strings.Contains(s, " ")) {
		return q
	}
	return s
}

func rough(d schema.Duration) string {
	if std := time.Duration(d); std >= time.Minute {
		return strings.TrimSuffix(std.Truncate(time.Minute).String(), "0s")
	}
	return time.Duration(d).Truncate(time.Second).String()
}

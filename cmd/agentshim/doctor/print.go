package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// Print writes a report for people.
func (r *Report) Print(w io.Writer) error {
	p := &printer{w: w}
	p.fabric(r)
	for i := range r.Runtimes {
		p.runtime(&r.Runtimes[i])
	}
	if len(r.Runtimes) == 0 {
		p.say("", "no agent runtime was found on this machine")
	}
	p.agents(r.Agents)
	if r.Enforced {
		p.say("\nok       ", "what the fabric decides is enforced here")
	} else {
		p.say("\nPROBLEM  ", "what the fabric decides is not all enforced here; the lines with PROBLEM say why")
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(word, text string) {
	if _, err := fmt.Fprintf(p.w, "%s%s\n", word, text); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) fabric(r *Report) {
	p.say("host     ", fmt.Sprintf("%s, agentshim %s", r.Host, r.Release))
	if b := r.Bus; b.Reached {
		p.say("bus      ", fmt.Sprintf("%s, fabric %s, configuration %d with %d hooks, in %s", b.URL, b.Fabric, b.ConfigVersion, b.Hooks, time.Duration(b.Took)))
	} else {
		p.say("PROBLEM  ", fmt.Sprintf("the fabric can not be reached at %s: %s", b.URL, b.Why))
	}
	switch d := r.Daemon; {
	case d.Running:
		p.say("daemon   ", fmt.Sprintf("%s, %d calls", d.Socket, d.Calls))
	default:
		p.say("daemon   ", "none; each hook reaches the fabric itself, which takes longer. 'agentshim serve' starts one")
	}
	if k := r.Policy; k.Known {
		p.say("policy   ", fmt.Sprintf("version %d is known here since %s: %d hooks guard calls also while the fabric can not be reached", k.ConfigVersion, rough(k.Age), k.Guards))
	} else {
		p.say("policy   ", fmt.Sprintf("none is known here for when the fabric can not be reached: %s", k.Why))
	}
}

func (p *printer) runtime(t *Runtime) {
	version := t.Version
	if version == "" {
		version = "version unknown"
	}
	program := t.Program
	if program == "" {
		program = "not on the PATH"
	}
	p.say("\n", fmt.Sprintf("%s (%s) %s, %s", t.Label, t.Runtime, version, program))
	for _, l := range t.Layers {
		asks := "asks nobody"
		if len(l.Events) > 0 {
			asks = fmt.Sprintf("asks at %s", strings.Join(l.Events, ", "))
		}
		p.say("  file     ", fmt.Sprintf("%s (%s): %s", l.Path, l.Scope, asks))
	}
	if c := t.Canary; c != nil && c.Judged {
		p.say("  tried    ", fmt.Sprintf("a call at %s was judged, in %s", c.Event, time.Duration(c.Took)))
	}
	for _, text := range t.Problems {
		p.say("  PROBLEM  ", text)
	}
	for _, text := range t.Hints {
		p.say("  note     ", text)
	}
	if len(t.Cannot) > 0 {
		p.say("  can not  ", strings.Join(t.Cannot, ", "))
	}
}

func (p *printer) agents(all []schema.AgentStatus) {
	if len(all) == 0 {
		p.say("\nagents   ", "the fabric saw none of this host in the last day")
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
		fmt.Fprintf(t, "%s\t%q\t%q\t%q\n", silent, a.Runtime, a.Version, a.Agent)
	}
	if err := t.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

// rough is a duration as people read it.
func rough(d schema.Duration) string {
	if std := time.Duration(d); std >= time.Minute {
		return strings.TrimSuffix(std.Truncate(time.Minute).String(), "0s")
	}
	return time.Duration(d).Truncate(time.Second).String()
}

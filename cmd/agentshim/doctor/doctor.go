// Package doctor examines whether what the fabric decides is enforced on this
// machine: which agent runtimes are here, whether they ask the shim, whether an
// answer comes, and what they can not be told.
//
// It changes nothing. The calls by which it tries hooks are those of an agent
// of its own, [Agent], with a tool that is none.
package doctor

import (
	"context"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/probe"
	"github.com/hookfabric/hookfabric/schema"
)

// Agent is whose calls those of the doctor are: nothing waits for it.
const Agent = "doctor"

// Tool is the tool of such a call. No matcher but those for all tools fits.
const Tool = "agentshim_doctor"

// Options say what is examined.
type Options struct {
	// Runtimes are those to be examined, whether they seem to be here or not; none:
	// all that are here.
	Runtimes []string
	Machine  install.Machine
	// NATS and Creds reach the fabric, State is the shims' folder, Socket the daemon's.
	NATS, Creds, State, Socket string
	// TLS is whom to trust there, and what to show.
	TLS certs.Files
	// Noted hears the version of a runtime that was found; nil: nobody does.
	Noted func(runtime, version string)
}

// A Report is what was found.
type Report struct {
	Release string `json:"release"`
	Host    string `json:"host"`
	// Enforced: what the fabric decides is done, as far as can be seen from here.
	Enforced bool      `json:"enforced"`
	Runtimes []Runtime `json:"runtimes"`
	Daemon   Daemon    `json:"daemon"`
	Bus      Bus       `json:"bus"`
	Policy   Policy    `json:"policy"`
	// Agents are those of this host that the fabric saw in the last day, first who
	// is silent for the longest.
	Agents []schema.AgentStatus `json:"agents,omitzero"`
}

// A Runtime is what was found of one agent runtime.
type Runtime struct {
	Runtime string `json:"runtime"`
	// Label is what people call it, Program where it is; empty: not on the PATH.
	Label   string  `json:"label"`
	Program string  `json:"program,omitzero"`
	Version string  `json:"version,omitzero"`
	Layers  []Layer `json:"layers,omitzero"`
	// Canary is what came of a call through the installed command.
	Canary *Canary `json:"canary,omitzero"`
	// Problems are why the fabric's decisions are not enforced; Hints are what else
	// is worth knowing.
	Problems []string `json:"problems,omitzero"`
	Hints    []string `json:"hints,omitzero"`
	// Cannot is what the runtime can not be told.
	Cannot []string `json:"cannot,omitzero"`
}

// A Layer is one configuration that the runtime reads.
type Layer struct {
	Scope install.Scope `json:"scope"`
	Path  string        `json:"path"`
	// Events are those at which it asks the shim.
	Events []string `json:"events"`

	found install.Found
}

// A Daemon is the local daemon, if it answers.
type Daemon struct {
	Socket  string `json:"socket,omitzero"`
	Running bool   `json:"running"`
	// Why is why it does not answer.
	Why   string `json:"why,omitzero"`
	Calls int64  `json:"calls,omitzero"`
}

// A Bus is the fabric, if it answers.
type Bus struct {
	// URL has no names and passwords.
	URL     string `json:"url"`
	Reached bool   `json:"reached"`
	Why     string `json:"why,omitzero"`
	// Fabric and ConfigVersion are what it says of itself.
	Fabric        string          `json:"fabric,omitzero"`
	ConfigVersion uint64          `json:"config_version,omitzero"`
	Hooks         int             `json:"hooks,omitzero"`
	Took          schema.Duration `json:"took,omitzero"`
}

// A Policy is what the shims of this machine know of the fabric's policy, for
// when it can not be reached.
type Policy struct {
	Known         bool            `json:"known"`
	Why           string          `json:"why,omitzero"`
	Fabric        string          `json:"fabric,omitzero"`
	ConfigVersion uint64          `json:"config_version,omitzero"`
	Guards        int             `json:"guards,omitzero"`
	Age           schema.Duration `json:"age,omitzero"`
}

// Examine looks at all of it, in bounded time.
func Examine(ctx context.Context, o Options) *Report {
	r := &Report{Release: schema.Release, Host: hostname(), Runtimes: []Runtime{}}
	f := reach(ctx, &o, r)
	defer f.close()
	r.Daemon = daemonState(ctx, &o)
	for _, name := range install.Names() {
		if t, here := o.runtime(ctx, name); here {
			t.examine(ctx, &o, f)
			r.Runtimes = append(r.Runtimes, *t)
		}
	}
	r.Policy = policyState(&o) // after the calls: the first of a machine brings the policy
	r.Enforced = r.Bus.Reached
	for i := range r.Runtimes {
		r.Enforced = r.Enforced && len(r.Runtimes[i].Problems) == 0
	}
	return r
}

// runtime is what is there of a runtime, if anything is.
func (o *Options) runtime(ctx context.Context, name string) (*Runtime, bool) {
	t := &Runtime{Runtime: name, Label: install.Label(name)}
	wanted := len(o.Runtimes) == 0
	for _, n := range o.Runtimes {
		wanted = wanted || n == name
	}
	if !wanted {
		return nil, false
	}
	var all sync.WaitGroup
	all.Go(func() { t.Program, t.Version = program(ctx, name) })
	t.read(o)
	all.Wait()
	if t.Version != "" && o.Noted != nil {
		o.Noted(name, t.Version)
	}
	return t, t.Program != "" || len(t.Layers) > 0 || len(t.Problems) > 0 || len(o.Runtimes) > 0
}

func program(ctx context.Context, name string) (path, version string) {
	path = probe.Find(install.Program(name))
	if path == "" {
		return "", ""
	}
	if v := probe.VersionOf(ctx, path); v.Known() {
		version = v.String()
	}
	return path, version
}

// problem notes why the fabric's decisions are not enforced, hint what else is
// worth knowing.
func (t *Runtime) problem(text string) { t.Problems = append(t.Problems, text) }
func (t *Runtime) hint(text string)    { t.Hints = append(t.Hints, text) }

// took is a duration as people read it.
func took(d time.Duration) schema.Duration { return schema.Duration(d.Round(10 * time.Microsecond)) }

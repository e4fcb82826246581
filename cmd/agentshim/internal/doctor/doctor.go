// Package doctor checks whether the agent runtimes of this machine enforce the decisions of
// the fabric: which runtimes are installed, whether they ask the shim, whether the fabric
// judges a call, and what each runtime cannot express.
//
// It changes no configuration. Its test calls belong to an agent of its own, [Agent], and
// name a tool that does not exist, [Tool].
package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
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
	// Named: NATS was named. Otherwise it is what the hooks of this machine ask, by their own
	// arguments or by the daemon.
	Named bool
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

	folder string // in which doctor looked for a project's configurations
}

// A Runtime is what was found of one agent runtime.
type Runtime struct {
	Runtime string `json:"runtime"`
	// Label is what people call it, Program where it is; empty: not on the PATH.
	Label string `json:"label"`
	// Connected: some configuration asks the fabric.
	Connected bool    `json:"connected"`
	Program   string  `json:"program,omitzero"`
	Version   string  `json:"version,omitzero"`
	Layers    []Layer `json:"layers,omitzero"`
	// Canary is what came of a call through the installed command.
	Canary *Canary `json:"canary,omitzero"`
	// Problems are why the fabric's decisions are not enforced; Hints are what else
	// is worth knowing.
	Problems []string `json:"problems,omitzero"`
	Hints    []string `json:"hints,omitzero"`
	// Cannot is what the runtime cannot be told.
	Cannot []string `json:"cannot,omitzero"`

	// unchecked counts the Problems because of which doctor sent no test call.
	unchecked int
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
	// NATS is where it looks for the fabric, without names and passwords.
	NATS string `json:"nats,omitzero"`
}

// A Bus is the fabric, if it answers.
type Bus struct {
	// URL has no names and passwords.
	URL     string `json:"url"`
	Reached bool   `json:"reached"`
	Why     string `json:"why,omitzero"`
	// Hidden is why it is not known what the fabric says of itself.
	Hidden string `json:"hidden,omitzero"`
	// Fabric and ConfigVersion are what it says of itself.
	Fabric        string          `json:"fabric,omitzero"`
	ConfigVersion uint64          `json:"config_version,omitzero"`
	Hooks         int             `json:"hooks,omitzero"`
	Took          schema.Duration `json:"took,omitzero"`
}

// A Policy is what the shims of this machine know of the fabric's policy, for
// when it cannot be reached.
type Policy struct {
	Known         bool   `json:"known"`
	Why           string `json:"why,omitzero"`
	Fabric        string `json:"fabric,omitzero"`
	ConfigVersion uint64 `json:"config_version,omitzero"`
	// Guards counts the hooks that guard calls then, of all Fabrics that answered at the URL.
	Guards  int             `json:"guards,omitzero"`
	Fabrics int             `json:"fabrics,omitzero"`
	Age     schema.Duration `json:"age,omitzero"`
}

// Examine looks at all of it, in bounded time.
func Examine(ctx context.Context, o Options) *Report {
	r := &Report{Release: schema.Release, Host: hostname(), Runtimes: []Runtime{}, folder: o.Machine.Dir}
	r.Daemon = daemonState(ctx, &o)
	var found []*Runtime
	for _, name := range install.Names() {
		if t, is := o.runtime(ctx, name); is {
			found = append(found, t)
		}
	}
	o.adopt(found, &r.Daemon)
	f := reach(ctx, &o, r)
	defer f.close()
	for _, t := range found {
		t.examine(ctx, &o, f)
		r.Runtimes = append(r.Runtimes, *t)
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
	if len(o.Runtimes) > 0 && !slices.Contains(o.Runtimes, name) {
		return nil, false
	}
	var all sync.WaitGroup
	var why error
	all.Go(func() { t.Program, t.Version, why = program(ctx, name) })
	t.read(o)
	all.Wait()
	if why != nil && t.Connected {
		t.hint(why.Error())
	}
	if t.Version != "" && o.Noted != nil {
		o.Noted(name, t.Version)
	}
	return t, t.Program != "" || len(t.Layers) > 0 || len(t.Problems) > 0 || len(o.Runtimes) > 0
}

// adopt examines the fabric that the hooks of this machine ask, if its user named none. A
// project may be a stranger's, and is not believed.
func (o *Options) adopt(all []*Runtime, d *Daemon) {
	if o.Named {
		return
	}
	for _, t := range all {
		for _, l := range t.Layers {
			for _, h := range l.found.Hooks {
				nats := h.Flag("--nats")
				if nats == "" || l.Scope == install.Project {
					continue
				}
				if o.NATS = nats; o.Creds == "" && o.TLS.Empty() {
					o.Creds, o.TLS = h.Flag("--creds"), certs.Files{CA: h.Flag("--tls-ca"), Cert: h.Flag("--tls-cert"), Key: h.Flag("--tls-key")}
				}
				return
			}
		}
	}
	if d.Running && d.NATS != "" && !strings.Contains(d.NATS, "@") { // else its password is not known
		o.NATS = d.NATS
	}
}

// program is where a runtime is and its version, or why that is not known.
func program(ctx context.Context, name string) (path, version string, err error) {
	path = probe.Find(install.Program(name))
	if path == "" {
		return "", "", nil
	}
	v, err := probe.AskVersion(ctx, path)
	if err != nil {
		return path, "", err
	}
	return path, v.String(), nil
}

// problem notes why the fabric's decisions are not enforced, hint what else is
// worth knowing.
func (t *Runtime) problem(text string) { t.Problems = append(t.Problems, text) }
func (t *Runtime) hint(text string)    { t.Hints = append(t.Hints, text) }

// notTried reports why doctor sent no test call, which does not show that the runtime
// enforces too little.
func (t *Runtime) notTried(why string) {
	t.problem(why)
	t.unchecked++
}

// took is a duration as people read it.
func took(d time.Duration) schema.Duration { return schema.Duration(d.Round(10 * time.Microsecond)) }

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
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// Agent is the agent of the doctor's test calls. No items wait for it.
const Agent = "doctor"

// Tool is the tool of a test call. Only matchers for all tools match it.
const Tool = "agentshim_doctor"

// Options are the parameters of an examination.
type Options struct {
	// Runtimes are the runtimes to examine; empty: all that are installed or configured.
	Runtimes []string
	Machine  install.Machine
	// NATS and Creds lead to the fabric. State is the shims' folder, Socket the daemon's.
	NATS, Creds, State, Socket string
	// Named: the user named NATS. Else it comes from the hooks of this machine, or the daemon.
	Named bool
	// TLS holds the certificates for the connection.
	TLS certs.Files
}

// A Report is the result of an examination.
type Report struct {
	Release string `json:"release"`
	Host    string `json:"host"`
	// Enforced: the runtimes enforce the fabric's decisions, as far as the doctor can see.
	Enforced bool      `json:"enforced"`
	Runtimes []Runtime `json:"runtimes"`
	Daemon   Daemon    `json:"daemon"`
	Bus      Bus       `json:"bus"`
	Policy   Policy    `json:"policy"`
	// Agents are the agents of this host in the last day, the most silent first.
	Agents []schema.AgentStatus `json:"agents,omitzero"`

	folder string // the folder whose project configurations the doctor read
}

// A Runtime is the result for one agent runtime.
type Runtime struct {
	Runtime string `json:"runtime"`
	// Label is the runtime's name for people. Program is its path; empty: it is not on the PATH.
	Label string `json:"label"`
	// Connected: some configuration has a hook that asks the fabric.
	Connected bool    `json:"connected"`
	Program   string  `json:"program,omitzero"`
	Version   string  `json:"version,omitzero"`
	Layers    []Layer `json:"layers,omitzero"`
	// Canary is the result of a test call through the installed hook.
	Canary *Canary `json:"canary,omitzero"`
	// Problems are why the runtime does not enforce the decisions. Hints are other remarks.
	Problems []string `json:"problems,omitzero"`
	Hints    []string `json:"hints,omitzero"`
	// Cannot lists the abilities that the runtime lacks.
	Cannot []string `json:"cannot,omitzero"`

	// unchecked counts the Problems that kept the doctor from sending a test call.
	unchecked int
}

// A Layer is one configuration that the runtime reads.
type Layer struct {
	Scope install.Scope `json:"scope"`
	Path  string        `json:"path"`
	// Events are the events at which it has a hook of agentshim.
	Events []string `json:"events"`

	found install.Found
}

// A Daemon is the local daemon, if it answers.
type Daemon struct {
	Socket  string `json:"socket,omitzero"`
	Running bool   `json:"running"`
	// Why is the reason why it does not answer.
	Why   string `json:"why,omitzero"`
	Calls int64  `json:"calls,omitzero"`
	// NATS is the URL at which it connects to the fabric, without names and passwords.
	NATS string `json:"nats,omitzero"`
}

// A Bus is the fabric, if it answers.
type Bus struct {
	// URL is the bus's URL without names and passwords.
	URL     string `json:"url"`
	Reached bool   `json:"reached"`
	Why     string `json:"why,omitzero"`
	// Hidden is the reason why the doctor cannot read the fabric's status.
	Hidden string `json:"hidden,omitzero"`
	// Fabric and ConfigVersion come from the fabric's status.
	Fabric        string          `json:"fabric,omitzero"`
	ConfigVersion uint64          `json:"config_version,omitzero"`
	Hooks         int             `json:"hooks,omitzero"`
	Took          schema.Duration `json:"took,omitzero"`
}

// A Policy is the stored policy of this machine's shims, for when they cannot reach the fabric.
type Policy struct {
	Known         bool   `json:"known"`
	Why           string `json:"why,omitzero"`
	Fabric        string `json:"fabric,omitzero"`
	ConfigVersion uint64 `json:"config_version,omitzero"`
	// Guards counts the hooks that guard calls in that case, of all Fabrics that answered at the URL.
	Guards  int             `json:"guards,omitzero"`
	Fabrics int             `json:"fabrics,omitzero"`
	Age     schema.Duration `json:"age,omitzero"`
}

// Examine examines everything, in bounded time.
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
	r.Policy = policyState(&o) // after the test calls: the first call of a machine fetches the policy
	r.Enforced = r.Bus.Reached
	for i := range r.Runtimes {
		r.Enforced = r.Enforced && len(r.Runtimes[i].Problems) == 0
	}
	return r
}

// runtime finds a runtime, and reports whether it is installed or configured.
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
	if !install.Foreign(o.State) {
		_ = shimstate.Folder(o.State).NoteVersion(name, t.Version) // for hooks, which have no time to ask the runtime
	}
	return t, t.Program != "" || len(t.Layers) > 0 || len(t.Problems) > 0 || len(o.Runtimes) > 0
}

// adopt takes the fabric from the hooks of this machine, if none is named, but not from a project's.
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
	if d.Running && d.NATS != "" && !strings.Contains(d.NATS, "@") { // otherwise its password is unknown
		o.NATS = d.NATS
	}
}

// program returns the path and version of a runtime, or why the version is unknown.
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

// problem adds a reason why the runtime does not enforce the decisions, and hint a remark.
func (t *Runtime) problem(text string) { t.Problems = append(t.Problems, text) }
func (t *Runtime) hint(text string)    { t.Hints = append(t.Hints, text) }

// notTried reports why doctor sent no test call, which does not show a problem of the runtime.
func (t *Runtime) notTried(why string) {
	t.problem(why)
	t.unchecked++
}

func took(d time.Duration) schema.Duration { return schema.Duration(d.Round(10 * time.Microsecond)) }

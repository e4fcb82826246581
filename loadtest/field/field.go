package field

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// A Kind is a kind of fabric.
type Kind string

// The kinds of fields.
const (
	// Embedded is one broker process that runs all hooks itself.
	Embedded Kind = "embedded"
	// Local runs brokers and workers, each as a process.
	Local Kind = "local"
	// External uses a running fabric.
	External Kind = "external"
)

// Config configures a field.
type Config struct {
	Kind Kind
	// NATS and Creds are the URL of an external fabric and its credentials.
	NATS, Creds string
	// Brokers and Workers are the numbers of processes; no brokers count as one.
	Brokers, Workers int
	// Server starts a separate NATS server process, so that killing a broker does not kill
	// the server. Otherwise all processes use the first broker's embedded server.
	Server bool
	// Hooks is the text of the hooks.yaml.
	Hooks string
	// Pool is the pool of the hookworkers; empty: "default".
	Pool string
	// Cluster makes the brokers a cluster, with a server in each. Hosts are the hosts of
	// the brokers, one for each, so that faults can cut them off from each other; nil: all
	// run on this host.
	Cluster bool
	Hosts   []*faults.Host
	// Links puts a network that can have faults in front of the server. There is one for
	// each worker, each broker without its own server and each process of the scenario.
	Links bool
	// AgentRate is how many events a second a broker judges for one agent; 0: no limit.
	AgentRate float64
	// Sync is how often the server syncs to disk; 0: at every write.
	Sync schema.Duration
	// Whole returns the role and configuration of the one process of an embedded fabric,
	// given its broker's; nil: the process is only a broker.
	Whole func(roles.BrokerConfig) (role string, config any)
	// Worker returns the role and configuration of a worker, given its name and its
	// server's URL; nil: a hookworker.
	Worker func(name, url string) (role string, config any)
}

// A Site has the resources of a field.
type Site struct {
	// Dir is an empty directory.
	Dir string
	// Crew has the settings for the processes. The processes do not belong to it.
	Crew *proc.Crew
}

// A Member is a process that a scenario adds.
type Member struct {
	// Name is unique. Its part before the last dash is its kind: "driver" in "driver-1".
	Name string
	// Role and Config start it. The successor of a killed process has another name, At.By.
	Role   string
	Config func(At) any
	// Facts receives the facts that the role reports at its start; nil: the facts are not
	// requested.
	Facts any
	// Spared excludes it from faults.
	Spared bool
}

// At has the values that a process needs at its start.
type At struct {
	// By is the name of this process, a new one after each start.
	By string
	// NATS is the URL of its server, through its own link if it has one.
	NATS string
}

// A Field is a running fabric.
type Field struct {
	config Config
	site   Site
	address
	hooks string // the file

	mu      sync.Mutex // guards what follows
	members []*faults.Victim
	links   map[string]*faults.Link
	spent   map[string]float64 // CPU seconds of the killed, by member
	lost    chan error
}

// address is the address of the server.
type address struct {
	host string // with its port; empty: an external fabric
	url  string
}

// Open starts the field, and waits until it is ready. After an error no process is left.
func Open(ctx context.Context, c Config, s Site) (*Field, error) {
	f := &Field{config: c, site: s, links: map[string]*faults.Link{}, spent: map[string]float64{}, lost: make(chan error, 1)}
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Field) open(ctx context.Context) error {
	switch f.config.Kind {
	case Embedded, Local:
		return f.openLocal(ctx)
	case External:
		return f.openExternal(ctx)
	default:
		return fmt.Errorf("unknown kind of fabric %q; write %s, %s or %s", f.config.Kind, Embedded, Local, External)
	}
}

// URL returns the server's URL for a member. It leads through the member's link if the
// member has one. For other names it returns the server's own URL.
func (f *Field) URL(member string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.links[member]; k != nil {
		return "nats://" + k.Addr()
	}
	return f.url
}

// Creds returns the file of the credentials for the field's server; empty: the server needs
// none.
func (f *Field) Creds() string { return f.config.Creds }

// Members returns the names of all processes that faults can affect, in the order of their
// start.
func (f *Field) Members() []string {
	var names []string
	for _, v := range f.victims() {
		if !v.Spared {
			names = append(names, v.Name)
		}
	}
	return names
}

// Add starts a process of the scenario.
func (f *Field) Add(ctx context.Context, m Member) (*faults.Victim, error) {
	if f.Member(m.Name) != nil {
		return nil, fmt.Errorf("two members have the name %s", m.Name)
	}
	link, err := f.link(m.Name)
	if err != nil {
		return nil, err
	}
	return f.start(ctx, m, link)
}

// start starts a member.
func (f *Field) start(ctx context.Context, m Member, link *faults.Link) (*faults.Victim, error) {
	v := f.member(m, faults.Spec{Link: link, Like: f.site.Crew})
	return v, v.Start(ctx)
}

// member adds a member that is not started yet, with special settings in the spec.
func (f *Field) member(m Member, s faults.Spec) *faults.Victim {
	url := f.URL(m.Name)
	s.Name, s.Role, s.Facts, s.Spared, s.Lost = m.Name, m.Role, m.Facts, m.Spared, f.lose
	s.Config = func(by string) any { return m.Config(At{By: by, NATS: url}) }
	s.Ending = func(pid int) { f.spend(m.Name, pid) }
	v := faults.NewVictim(s)
	f.mu.Lock()
	f.members = append(f.members, v)
	f.mu.Unlock()
	return v
}

// link returns the link of a member, or nil if it has none.
func (f *Field) link(member string) (*faults.Link, error) {
	if !f.config.Links || f.host == "" {
		return nil, nil //nolint:nilnil // no link is what a member without one has
	}
	k, err := faults.NewLink(f.host)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[member] = k
	return k, nil
}

// Member returns the member of that name, or nil if it does not exist.
func (f *Field) Member(name string) *faults.Victim {
	all := f.victims()
	if i := slices.IndexFunc(all, func(v *faults.Victim) bool { return v.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// victims returns a copy of the current members.
func (f *Field) victims() []*faults.Victim {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// Watch waits until over is closed. It returns an error for the first process that ended
// unexpectedly, because later measurements are then not valid.
func (f *Field) Watch(ctx context.Context, over <-chan struct{}) error {
	select {
	case err := <-f.lost:
		return err
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *Field) lose(err error) {
	select {
	case f.lost <- err:
	default: // the first one is enough
	}
}

// Killed returns the names of all killed processes, as they were started.
func (f *Field) Killed() map[string]bool {
	killed := map[string]bool{}
	for _, v := range f.victims() {
		for _, by := range v.Killed() {
			killed[by] = true
		}
	}
	return killed
}

// Fault causes one fault at the members that match and returns when its effects are undone.
// A [faults.Schedule] calls it.
func (f *Field) Fault(ctx context.Context, fault faults.Fault) error {
	if wrong := f.Check(fault); wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	names := fault.Pick(f.Members(), random)
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = f.Member(name).Suffer(ctx, fault) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Check returns sentences about why the fault is not possible here.
func (f *Field) Check(fault faults.Fault) []string {
	members := f.Members()
	wrong := fault.Check(members)
	if f.config.Kind == External && len(faults.Matching(fault.Member, members)) == 0 {
		return []string{fmt.Sprintf("%v: the fabric at %s does not belong to this run, so it gets no faults; only the processes of this run can fail: %s",
			fault, f.url, strings.Join(members, ", "))}
	}
	for _, name := range faults.Matching(fault.Member, members) {
		if fault.Kind.OnLink() && f.Member(name).Link == nil {
			wrong = append(wrong, fmt.Sprintf("%v: %s has no network that could fail", fault, name))
		}
		if fault.Kind.OnWire() && f.Member(name).Host == nil {
			wrong = append(wrong, fmt.Sprintf("%v: %s is not a broker of a cluster with its own network namespace", fault, name))
		}
	}
	return wrong
}

// Close ends all processes, the last started first, and then the links.
func (f *Field) Close() error {
	var errs []error
	f.mu.Lock()
	links := f.links
	f.mu.Unlock()
	for _, k := range links {
		k.Set(faults.Conditions{})
	}
	for _, v := range slices.Backward(f.victims()) {
		errs = append(errs, v.End())
	}
	for _, k := range links {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

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

// A Kind is a way in which a fabric is put up.
type Kind string

// The kinds of fields.
const (
	// Embedded is one broker process that runs all hooks itself.
	Embedded Kind = "embedded"
	// Local is brokers and workers, each a process.
	Local Kind = "local"
	// External is a fabric that is there already.
	External Kind = "external"
)

// Config says what field to open.
type Config struct {
	Kind Kind
	// NATS and Creds are where an external fabric is, and how to be let in.
	NATS, Creds string
	// Brokers and Workers are how many there are of each; no brokers are one.
	Brokers, Workers int
	// Server puts a NATS server beside the brokers that is a process of its own:
	// killing a broker does not kill it. Else the first broker's embedded one is
	// everybody's.
	Server bool
	// Hooks is the text of the hooks.yaml.
	Hooks string
	// Pool is what hookworkers serve; empty: "default".
	Pool string
	// Cluster has each broker have a server in itself, which keep everything together;
	// Hosts are those that they run on, one for each, so that they can be cut off from each
	// other; nil: all run on this one.
	Cluster bool
	Hosts   []*faults.Host
	// Links puts a network that can fail before the server, one for each worker,
	// broker without a server of its own and process of the scenario.
	Links bool
	// AgentRate is how many events a second a broker judges for one agent; 0: any number.
	AgentRate float64
	// Sync is how often the server syncs to disk; 0: at every write.
	Sync schema.Duration
	// Whole says what the one process of an embedded fabric is, given what its broker is;
	// nil: nothing but that.
	Whole func(roles.BrokerConfig) (role string, config any)
	// Worker says what a worker is, given its name and its server's URL; nil: a hookworker.
	Worker func(name, url string) (role string, config any)
}

// A Site is what a field needs of the machine.
type Site struct {
	// Dir is an empty directory.
	Dir string
	// Crew is what the processes are started like. They are not part of it.
	Crew *proc.Crew
}

// A Member is a process that a scenario adds.
type Member struct {
	// Name is unique; its part before the last dash says what it is: "driver-1".
	Name string
	// Role and Config start it. A process that takes the place of a killed one has
	// another name, At.By.
	Role   string
	Config func(At) any
	// Facts takes what the role tells of itself; nil: nobody asks.
	Facts any
	// Spared means that no fault happens to it.
	Spared bool
}

// At is what a process must know at its start.
type At struct {
	// By is this process, a new name after each start.
	By string
	// NATS is its server, behind its own link if it has one.
	NATS string
}

// A Field is a fabric that is up.
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

// address is where the server listens.
type address struct {
	host string // with its port; empty: the fabric is not ours
	url  string
}

// Open puts up the field. It is ready for use, or else nothing is left of it.
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

// URL is the server as the member reaches it, which is behind the member's link
// if it has one. Whoever is no member reaches the server itself.
func (f *Field) URL(member string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.links[member]; k != nil {
		return "nats://" + k.Addr()
	}
	return f.url
}

// Creds are the file of the credentials for the field's server; empty: it asks
// for none.
func (f *Field) Creds() string { return f.config.Creds }

// Members are the names of all processes that faults can be done to, in the
// order of their start.
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

// member adds a member that is not up yet, of which the spec says what is special.
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

// link is the network of a member that gets one.
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

// Member is the member of that name; nil: there is none.
func (f *Field) Member(name string) *faults.Victim {
	all := f.victims()
	if i := slices.IndexFunc(all, func(v *faults.Victim) bool { return v.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// victims is a copy of the members as they are now.
func (f *Field) victims() []*faults.Victim {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// Watch waits until over, and fails with the first process that ended and was
// not to: what others measure then is nothing worth.
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

// Killed are the names of all processes that were killed, by the
// names with which they were started.
func (f *Field) Killed() map[string]bool {
	killed := map[string]bool{}
	for _, v := range f.victims() {
		for _, by := range v.Killed() {
			killed[by] = true
		}
	}
	return killed
}

// Fault does one fault to the members that it means and returns when nothing is
// left of it. It is what a [faults.Schedule] does on time.
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

// Check says in sentences why the fault cannot be done here.
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

// Close ends all processes, the last started first, and what carried them.
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

package field

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
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

// The names of a field's members. Those of brokers and workers are followed by numbers.
const (
	Server = "server"
	Broker = "broker"
	Worker = "worker"
)

// Numbered returns the name of the n-th member of a kind, counted from 1.
func Numbered(kind string, n int) string { return fmt.Sprintf("%s-%d", kind, n) }

// Config configures a field.
type Config struct {
	Kind Kind
	// Dir is an empty directory. Crew has the settings for the processes, which do not
	// belong to it.
	Dir  string
	Crew *proc.Crew
	// NATS and Creds are the URL of an external fabric and its credentials.
	NATS, Creds string
	// Brokers and Workers are the numbers of processes; no brokers count as one.
	Brokers, Workers int
	// Server starts a separate NATS server process, so that killing a broker does not kill
	// the server. Otherwise all processes use the first broker's embedded server.
	Server bool
	// Hooks is the text of the hooks.yaml.
	Hooks string
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
	// WorkerRole is the role of a worker, and Worker returns its configuration.
	WorkerRole string
	Worker     func(faults.At) any
}

// A Field is a running fabric.
type Field struct {
	config Config
	host   string // of the server, with its port; empty: links cannot lead there
	url    string
	hooks  string // the file

	mu      sync.Mutex // guards what follows
	members []*faults.Victim
	links   []*faults.Link
	spent   map[string]float64 // CPU seconds of the killed, by member
	lost    chan error
}

// Open starts the field, and waits until it is ready. After an error no process is left.
func Open(ctx context.Context, c Config) (*Field, error) {
	f := &Field{config: c, spent: map[string]float64{}, lost: make(chan error, 1)}
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

// URL returns the server's URL, without a link.
func (f *Field) URL() string { return f.url }

// Peer returns the client address of broker n of a cluster, counted from 1.
func (f *Field) Peer(n int) string { return strings.Split(f.url, ",")[n-1] }

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

// Add starts a process of the scenario. It has a name, a role and a configuration.
func (f *Field) Add(ctx context.Context, s faults.Spec) (*faults.Victim, error) {
	if f.Member(s.Name) != nil {
		return nil, fmt.Errorf("two members have the name %s", s.Name)
	}
	if f.config.Links && f.host != "" {
		var err error
		if s.Link, err = faults.NewLink(f.host); err != nil {
			return nil, err
		}
	}
	return f.start(ctx, s)
}

func (f *Field) start(ctx context.Context, s faults.Spec) (*faults.Victim, error) {
	v := f.member(s)
	return v, v.Start(ctx)
}

// member adds a member that is not started yet.
func (f *Field) member(s faults.Spec) *faults.Victim {
	s.NATS, s.Lost, s.Ending = f.url, f.lose, func(pid int) { f.spend(s.Name, pid) }
	if s.Like == nil {
		s.Like = f.config.Crew
	}
	if s.Link != nil {
		s.NATS = "nats://" + s.Link.Addr()
	}
	v := faults.NewVictim(s)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, v)
	if s.Link != nil {
		f.links = append(f.links, s.Link)
	}
	return v
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

// Fault causes one fault at a member and returns when its effects are undone. A
// [faults.Schedule] calls it.
func (f *Field) Fault(ctx context.Context, fault faults.Fault) error {
	v := f.Member(fault.Member)
	if v == nil {
		return fmt.Errorf("%v: this run has only the processes %s", fault, strings.Join(f.Members(), ", "))
	}
	return v.Suffer(ctx, fault)
}

// Usage returns the current usage of each member. The CPU time includes that of its killed
// processes. It is empty on systems without /proc.
func (f *Field) Usage() map[string]proc.Usage {
	all := map[string]proc.Usage{}
	for _, v := range f.victims() {
		if u, ok := proc.UsageOf(v.Pid()); ok {
			f.mu.Lock()
			u.CPU += f.spent[v.Name]
			f.mu.Unlock()
			all[v.Name] = u
		}
	}
	return all
}

// spend adds the usage of a process that is about to be killed.
func (f *Field) spend(member string, pid int) {
	u, _ := proc.UsageOf(pid)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spent[member] += u.CPU
}

// Close ends all processes, the last started first, and then the links.
func (f *Field) Close() error {
	var errs []error
	for _, k := range f.links {
		k.Set(faults.Conditions{})
	}
	for _, v := range slices.Backward(f.victims()) {
		errs = append(errs, v.End())
	}
	for _, k := range f.links {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

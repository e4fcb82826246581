package crash

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// The shape of the field.
const (
	hookworkers    = 3
	producers      = 2
	agentsPerShim  = 25
	lanes          = 2
	pool           = "crew"
	think          = 800 * time.Millisecond
	shimRole       = "shim"
	producerRole   = "producer"
	firstPort      = 20_000
	portsAfterThat = 10_000
)

// Roles are the roles of this package.
func Roles() map[string]proc.Start {
	return map[string]proc.Start{
		shimRole:     proc.Started(startShim),
		producerRole: proc.Started(audit.StartProducer),
	}
}

// field makes the field, with nobody up.
func (o Options) field() (*field, error) {
	hooks, err := o.write()
	if err != nil {
		return nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	f := &field{
		Options: o, nats: "nats://" + listen, began: time.Now(), audit: audit.New(),
		deaths: deaths{killed: map[string]bool{}, counts: map[string]int{}},
	}
	f.victims = append(f.victims, &victim{
		kind: roles.Broker, name: roles.Broker, role: roles.Broker, every: o.every(1),
		config: func(string) any {
			return roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(o.Dir, "data"), Listen: listen}
		},
	})
	for i := range hookworkers {
		f.victims = append(f.victims, &victim{
			kind: roles.HookWorker, name: fmt.Sprintf("%s-%d", roles.HookWorker, i), role: roles.HookWorker, every: o.every(2),
			config: func(string) any { return roles.WorkerConfig{NATS: f.nats, Pool: pool} },
		})
	}
	if err := f.people(); err != nil {
		return nil, err
	}
	for _, v := range f.victims {
		if len(o.Kill) > 0 && !slices.Contains(o.Kill, v.kind) {
			v.every = 0
		}
	}
	return f, nil
}

// Kinds are the kinds of processes that are killed.
func Kinds() []string { return []string{roles.Broker, roles.HookWorker, shimRole, producerRole} }

// every is about how long each of a kind lives that dies so many times less
// often than the broker, but once at least.
func (o *Options) every(times int) time.Duration {
	broker := min(max(o.faults()/4, time.Second), 8*time.Second)
	return min(time.Duration(times)*broker, o.faults()*6/10)
}

// people adds the shims and the producers, and opens their logs.
func (f *field) people() error {
	agents := make([]string, f.Agents)
	for i := range agents {
		agents[i] = fmt.Sprintf("agent-%03d", i)
	}
	for i := 0; i*agentsPerShim < len(agents); i++ {
		name := fmt.Sprintf("%s-%d", shimRole, i)
		log, err := f.log(name)
		if err != nil {
			return err
		}
		mine := agents[i*agentsPerShim : min((i+1)*agentsPerShim, len(agents))]
		f.victims = append(f.victims, &victim{
			kind: shimRole, name: name, role: shimRole, every: f.every(4),
			config: func(by string) any {
				return ShimConfig{NATS: f.nats, Log: log, By: by, Agents: mine, Lanes: lanes, Think: schema.Duration(think)}
			},
		})
	}
	each := (f.Injections-1)/(producers*len(agents)*len(audit.Sources())) + 1
	f.all = each * producers * len(agents) * len(audit.Sources())
	for i := range producers {
		name := fmt.Sprintf("%s-%d", producerRole, i)
		log, err := f.log(name)
		if err != nil {
			return err
		}
		f.victims = append(f.victims, &victim{
			kind: producerRole, name: name, role: producerRole, every: f.every(3),
			config: func(by string) any {
				return audit.ProducerConfig{
					NATS: f.nats, Log: log, By: by, Producer: name, Agents: agents, Each: each,
					Until: f.began.Add(f.For * 9 / 10).UnixNano(),
				}
			},
		})
	}
	return nil
}

// log opens the log of somebody for the audit.
func (f *field) log(name string) (string, error) {
	file := filepath.Join(f.Dir, name+".log")
	r, err := audit.OpenReader(file)
	if err != nil {
		return "", err
	}
	f.logs = append(f.logs, r)
	return file, nil
}

// freeAddress finds an address that nobody listens on, outside of the ports
// that systems give to outgoing connections: one of those could take it while
// the broker is dead.
func freeAddress() (string, error) {
	for port := firstPort; port < firstPort+portsAfterThat; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return l.Addr().String(), l.Close()
	}
	return "", fmt.Errorf("no port from %d to %d is free", firstPort, firstPort+portsAfterThat-1)
}

// pending asks the fabric what it still holds, when all should be delivered and
// known to be: a last check of its own books against the logs. A fabric that
// does not say is not all right either.
func (f *field) pending(ctx context.Context, r *Report) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lease, fmt.Errorf("the broker did not say within %v what is pending", lease))
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{URL: f.nats, Name: "loadtest crash"})
	if err != nil {
		return err
	}
	defer nc.Close()
	for {
		a := schema.PendingAnswer{Total: -1}
		err := roles.Control(ctx, nc, roles.Verb{Verb: schema.VerbPending}, schema.PendingRequest{Limit: 10}, &a)
		r.Pending = a.Total
		if err == nil && a.Total == 0 {
			return nil
		}
		if !measure.Pause(ctx, look) {
			return nil // the report says that it is not as it should be
		}
	}
}

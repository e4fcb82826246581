package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// The shape of the field.
const (
	hookworkers   = 3
	producers     = 2
	agentsPerShim = 25
	lanes         = 2
	pool          = "crew"
	think         = 800 * time.Millisecond
	shimRole      = "shim"
	daemonRole    = "daemon"
	producerRole  = "producer"
	// behindDaemon holds the agents that a daemon asks for, and is not killed.
	behindDaemon = "behind"
)

// Roles are the roles of this package.
func Roles() map[string]proc.Start {
	return map[string]proc.Start{
		shimRole:     proc.Started(startShim),
		daemonRole:   proc.Started(startDaemon),
		producerRole: proc.Started(audit.StartProducer),
	}
}

// open puts up the fabric, and then those who use it.
func (o Options) open(ctx context.Context) (*run, error) {
	f, err := field.Open(ctx, field.Config{
		Kind: field.Local, Workers: hookworkers, Hooks: hooksYAML(), Pool: pool,
	}, field.Site{Dir: o.Dir, Crew: o.Crew})
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, field: f, began: time.Now(), audit: audit.New()}
	if err := r.people(ctx); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// times is how many times less often than the broker each kind of process dies.
func times() map[string]int {
	return map[string]int{roles.Broker: 1, roles.HookWorker: 2, shimRole: 4, daemonRole: 4, producerRole: 3}
}

// Kinds are the kinds of processes that are killed.
func Kinds() []string {
	return []string{roles.Broker, roles.HookWorker, shimRole, daemonRole, producerRole}
}

// kindOf is the kind of a member of the field.
func kindOf(member string) string {
	kind, _, _ := strings.Cut(member, "-")
	if kind == field.Worker {
		return roles.HookWorker
	}
	return kind
}

// every is about how long each of a kind lives that dies so many times less
// often than the broker, but once at least.
func (o *Options) every(times int) time.Duration {
	broker := min(max(o.faults()/4, time.Second), 8*time.Second)
	return min(time.Duration(times)*broker, o.faults()*6/10)
}

// kills are the moments at which members are killed: each lives half to one and
// a half of what its kind lives on average.
func (o *Options) kills(members []string) []faults.Fault {
	var all []faults.Fault
	for _, m := range members {
		kind := kindOf(m)
		if kind == behindDaemon || len(o.Kill) > 0 && !slices.Contains(o.Kill, kind) {
			continue
		}
		every := o.every(times()[kind])
		for at := every/2 + rand.N(every); at < o.faults(); at += every/2 + rand.N(every) {
			all = append(all, faults.Fault{Kind: faults.Kill, Member: m, At: schema.Duration(at)})
		}
	}
	return all
}

// killed counts the members that were killed, by kind.
func (r *run) killed() map[string]int {
	counts := map[string]int{}
	for by := range r.field.Killed() {
		counts[kindOf(by)]++
	}
	return counts
}

// people adds the shims and the producers, and opens their logs.
func (r *run) people(ctx context.Context) error {
	agents := make([]string, r.Agents)
	for i := range agents {
		agents[i] = fmt.Sprintf("agent-%03d", i)
	}
	behind := min(len(agents)/2, agentsPerShim)
	if err := r.daemon(ctx, agents[:behind]); err != nil {
		return err
	}
	i := 0
	for mine := range slices.Chunk(agents[behind:], agentsPerShim) {
		err := r.add(ctx, fmt.Sprintf("%s-%d", shimRole, i), shimRole, func(at field.At, log string) any {
			return ShimConfig{NATS: at.NATS, Log: log, By: at.By, Agents: mine, Lanes: lanes, Think: schema.Duration(think)}
		})
		if err != nil {
			return err
		}
		i++
	}
	each := (r.Injections-1)/(producers*len(agents)*len(audit.Sources())) + 1
	r.all = each * producers * len(agents) * len(audit.Sources())
	for i := range producers {
		name := fmt.Sprintf("%s-%d", producerRole, i)
		err := r.add(ctx, name, producerRole, func(at field.At, log string) any {
			return audit.ProducerConfig{
				NATS: at.NATS, Log: log, By: at.By, Producer: name, Agents: agents, Each: each,
				Until: r.began.Add(r.For * 9 / 10).UnixNano(),
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// daemon adds a daemon, and the agents that it asks for.
func (r *run) daemon(ctx context.Context, agents []string) error {
	if len(agents) == 0 {
		return nil
	}
	state := filepath.Join(r.Dir, daemonRole)
	_, err := r.field.Add(ctx, field.Member{Name: daemonRole + "-0", Role: daemonRole, Config: func(at field.At) any {
		return DaemonConfig{NATS: at.NATS, State: state, By: at.By}
	}})
	if err != nil {
		return err
	}
	return r.add(ctx, behindDaemon+"-0", shimRole, func(at field.At, log string) any {
		return ShimConfig{Daemon: state, Log: log, By: at.By, Agents: agents, Lanes: lanes, Think: schema.Duration(think)}
	})
}

// add adds a process with a log.
func (r *run) add(ctx context.Context, name, role string, config func(at field.At, log string) any) error {
	log, err := r.log(name)
	if err != nil {
		return err
	}
	_, err = r.field.Add(ctx, field.Member{Name: name, Role: role, Config: func(at field.At) any { return config(at, log) }})
	return err
}

// log opens the log of somebody for the audit.
func (r *run) log(name string) (string, error) {
	file := filepath.Join(r.Dir, name+".log")
	l, err := audit.OpenReader(file)
	if err != nil {
		return "", err
	}
	r.logs = append(r.logs, l)
	return file, nil
}

// pending asks the fabric what it still holds, when all should be delivered and
// known to be: a last check of its own books against the logs. A fabric that
// does not say is not all right either.
func (r *run) pending(ctx context.Context, to *Report) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lease, fmt.Errorf("the broker did not list its pending messages within %v", lease))
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{URL: r.field.URL("audit"), Name: "loadtest crash"})
	if err != nil {
		return err
	}
	defer nc.Close()
	for {
		a := schema.PendingAnswer{Total: -1}
		err := roles.Control(ctx, nc, roles.Verb{Verb: schema.VerbPending}, schema.PendingRequest{Limit: 10}, &a)
		to.Pending = a.Total
		if err == nil && a.Total == 0 {
			return nil
		}
		if !measure.Pause(ctx, look) {
			return nil // the report says that it is not as it should be
		}
	}
}

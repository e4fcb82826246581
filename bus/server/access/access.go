package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// A Role is what a credential is for.
type Role string

// The roles.
const (
	// Agent is one agent's shim: it asks about its own events and no others.
	Agent Role = "agent"
	// Host is the daemon of a machine: it asks for the agents that run there.
	Host Role = "host"
	// Worker runs the hooks of its pools.
	Worker Role = "worker"
	// Operator is a person or a program that runs the fabric.
	Operator Role = "operator"
	// Orchestrator starts agents, and tells them things.
	Orchestrator Role = "orchestrator"
	// Broker is an aggregator elsewhere: everything in its tenant.
	Broker Role = "broker"
)

// Roles are all of them.
func Roles() []Role { return []Role{Agent, Host, Worker, Operator, Orchestrator, Broker} }

// Connections is how many connections one server lets be open at a time by one of the
// role's credentials; 0: any number. They are many more than any that work as they should
// need: each call of a runtime is one, where no daemon is beside it.
func (r Role) Connections() int {
	switch r {
	case Agent:
		return 256
	case Operator, Orchestrator:
		return 1024
	case Host, Worker:
		return 4096
	}
	return 0
}

// Everyone in the place of an agent's name means all agents, also those to come.
const Everyone = "*"

// A Grant is whom a credential is for. The zero Grant is for nobody.
type Grant struct {
	Role Role
	// Agents are those it acts for: one for an agent, any for a host and an
	// orchestrator, where [Everyone] is all of them; none for the others.
	Agents []string
	// Pools are those that a worker serves; none for the others.
	Pools []string
}

// Permissions are what a NATS user may do. Both lists nil: everything in its
// account.
type Permissions struct {
	Publish, Subscribe []string
	// Responses is how many messages may answer each request that comes, on its
	// reply subject, and ResponseTime for how long; 0: none.
	Responses    int
	ResponseTime time.Duration
	// Subscriptions bounds those at a time; 0: no bound.
	Subscriptions int64
}

// maxNames bounds the agents and the pools of one credential: their subjects
// travel in it each time that somebody connects.
const maxNames = 100

// Inbox is what the subjects begin with on which the user with the public key
// hears answers, without the dot behind it. bus.Connect finds it by itself.
func Inbox(key string) string { return bus.InboxOf(key) }

// Check says what is wrong with a grant; nil: nothing.
func (g Grant) Check() error {
	all := slices.Contains(g.Agents, Everyone)
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch g.Role {
	case Agent:
		if len(g.Agents) != 1 || all {
			wrong("credentials of the role agent are for one agent; use the role host for several")
		}
	case Host, Orchestrator:
		if len(g.Agents) == 0 {
			wrong("--agents is missing; write --agents a,b,c, or --agents '*' for all agents, also later ones")
		}
		if all && len(g.Agents) > 1 {
			wrong("--agents mixes '*' with names; write '*' alone, or names alone")
		}
	case Worker, Operator, Broker:
		if len(g.Agents) > 0 {
			wrong("%s takes no --agents; remove it", article(g.Role))
		}
	default:
		wrong("there is no role %.40q; use %s", string(g.Role), words())
	}
	if g.Role == Worker && len(g.Pools) == 0 {
		wrong("--pool is missing; name a pool that the worker serves")
	}
	if g.Role != Worker && g.Role.known() && len(g.Pools) > 0 {
		wrong("%s takes no --pool; remove it", article(g.Role))
	}
	if len(g.Agents) > maxNames || len(g.Pools) > maxNames {
		wrong("the credentials name %d agents and %d pools, and at most %d of each are possible; create several", len(g.Agents), len(g.Pools), maxNames)
	}
	for _, name := range slices.Concat(g.Agents, g.Pools) {
		if _, err := bus.Token(name); err != nil && name != Everyone {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r Role) known() bool { return slices.Contains(Roles(), r) }

// article is the role with its article, for sentences.
func article(r Role) string {
	if strings.ContainsRune("aeiou", rune(r[0])) {
		return "an " + string(r)
	}
	return "a " + string(r)
}

func words() string {
	var all []string
	for _, r := range Roles() {
		all = append(all, string(r))
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// Permissions are what the user of a grant may do that hears answers on inbox.
func (g Grant) Permissions(inbox string) (Permissions, error) {
	if err := g.Check(); err != nil {
		return Permissions{}, err
	}
	if g.Role == Broker {
		return Permissions{}, nil
	}
	agents, pools := tokens(g.Agents), tokens(g.Pools)
	p := Permissions{Subscribe: []string{inbox + ".>"}, Subscriptions: 256}
	switch g.Role {
	case Agent, Host:
		asker(&p, agents)
	case Worker:
		runner(&p, pools)
	case Operator:
		operator(&p)
	case Orchestrator:
		orchestrator(&p, agents)
	}
	return p, nil
}

// tokens are names that were checked, as they stand in subjects.
func tokens(names []string) (all []string) {
	for _, name := range names {
		token, err := bus.Token(name)
		if name == Everyone || err != nil {
			token = Everyone
		}
		all = append(all, token)
	}
	return all
}

// controls are the subjects of control requests about agents.
func controls(agents []string, verbs ...string) (all []string) {
	for _, agent := range agents {
		for _, verb := range verbs {
			all = append(all, "hook.v1.ctl."+verb+"."+agent)
		}
	}
	return all
}

// asker is what a shim needs: to ask, to hand over what waits and say so, to
// keep conversations, and to know the policy for when nobody answers.
func asker(p *Permissions, agents []string) {
	for _, agent := range agents {
		p.Publish = append(p.Publish, "hook.v1.event."+agent+".>")
	}
	p.Publish = append(p.Publish, controls(agents, schema.VerbAck, schema.VerbFetch, schema.VerbDrain, schema.VerbMode, schema.VerbCheckpoint,
		schema.VerbAnswer, schema.VerbRecord, schema.VerbKeep)...)
	p.Publish = append(p.Publish, controls([]string{"_"}, schema.VerbPolicy)...)
}

// The streams that operators reach. They are written down here and not taken from
// bus/state, which is above this package; a test holds them the same.
const (
	objectStream = "OBJ_hook_objects"
	objectKeys   = "$O.hook_objects."
	recordStream = "hook_record"
)

// longestCall is for how long a worker may answer a batch: as long as a call may
// last. It costs the server a few bytes per batch under way.
const longestCall = 24 * time.Hour

// runner is what a worker needs: batches of its pools and one answer for each, to
// beat, to be told of the configuration, and of conversations the parts that hooks
// need. Brokers tell it: it reaches nothing that is stored.
func runner(p *Permissions, pools []string) {
	for _, pool := range pools {
		p.Publish = append(p.Publish, "hook.v1.beat."+pool+".*")
		p.Subscribe = append(p.Subscribe, "hook.v1.run."+pool, "hook.v1.run."+pool+".*")
	}
	p.Publish = append(p.Publish, controls([]string{"_"}, schema.VerbFollow, schema.VerbPart)...)
	p.Subscribe = append(p.Subscribe, bus.ConfigChanged)
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		p.Subscribe = append(p.Subscribe, "$SRV."+verb, "$SRV."+verb+".hookfabric-worker", "$SRV."+verb+".hookfabric-worker.*")
	}
	p.Responses, p.ResponseTime = 1, longestCall
	p.Subscriptions = 64 + 2*int64(len(pools))
}

// operator is what people need who run the fabric: all control requests, the feed,
// to store texts that are too long for a message, and to read the record.
func operator(p *Permissions) {
	p.Publish = append(p.Publish, "hook.v1.ctl.*.*",
		objectKeys+"C.*", objectKeys+"M.*",
		"$JS.API.STREAM.INFO."+objectStream, "$JS.API.STREAM.MSG.GET."+objectStream, "$JS.API.STREAM.PURGE."+objectStream,
		"$JS.API.STREAM.INFO."+recordStream, "$JS.API.CONSUMER.CREATE."+recordStream+".*",
		"$JS.API.CONSUMER.MSG.NEXT."+recordStream+".*", "$JS.API.CONSUMER.DELETE."+recordStream+".*")
	p.Subscribe = append(p.Subscribe, "hook.v1.feed.*")
}

// orchestrator is what programs need that start agents: to tell them things, to
// take that back, to count their rounds, and to see what becomes of them.
func orchestrator(p *Permissions, agents []string) {
	p.Publish = append(p.Publish, controls(agents, schema.VerbInject, schema.VerbAnswer, schema.VerbRelay, schema.VerbRound, schema.VerbPending,
		schema.VerbWithdraw, schema.VerbMode, schema.VerbCheckpoint)...)
	p.Publish = append(p.Publish, controls([]string{"_"}, "status")...)
	for _, agent := range agents {
		p.Subscribe = append(p.Subscribe, "hook.v1.feed."+agent)
	}
	p.Subscriptions = 256 + int64(len(agents))
}

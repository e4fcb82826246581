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

// A Role is the purpose of credentials.
type Role string

// The roles.
const (
	// Agent is the shim of one agent. It may send events of this agent only.
	Agent Role = "agent"
	// Host is the daemon of a machine. It sends events of the agents that run there.
	Host Role = "host"
	// Worker runs the hooks of its pools.
	Worker Role = "worker"
	// Operator is a person or a program that runs the fabric.
	Operator Role = "operator"
	// Orchestrator starts agents and sends messages to them.
	Orchestrator Role = "orchestrator"
	// Broker is an aggregator on another machine. It may do everything in its tenant.
	Broker Role = "broker"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Agent, Host, Worker, Operator, Orchestrator, Broker} }

// Connections returns how many connections one server permits at a time for one credential of the role;
// 0: no limit. It is far more than a working client needs: without a daemon each call of a runtime is a
// connection.
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

// Everyone in place of an agent's name means all agents, including later ones.
const Everyone = "*"

// A Grant is the purpose of one credential. The zero Grant permits nothing.
type Grant struct {
	Role Role
	// Agents are the agents that it acts for: one for an agent, any number for a host and an
	// orchestrator, where [Everyone] is all; none for other roles.
	Agents []string
	// Pools are the pools that a worker serves; none for other roles.
	Pools []string
}

// Permissions are what a NATS user may do. Two nil lists permit everything in its account.
type Permissions struct {
	Publish, Subscribe []string
	// Responses is how many messages may answer each request on its reply subject, and
	// ResponseTime for how long; 0: none.
	Responses    int
	ResponseTime time.Duration
	// Subscriptions limits the concurrent subscriptions; 0: no limit.
	Subscriptions int64
}

// maxNames bounds the agents and the pools of one credential, because each connect transmits their
// subjects.
const maxNames = 100

// Inbox returns the prefix of the inboxes of the user with the public key, without a final dot.
// bus.Connect uses it automatically.
func Inbox(key string) string { return bus.InboxOf(key) }

// Check returns what is wrong with a grant; nil: nothing.
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

// article returns the role with its article.
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

// Permissions returns the permissions of the grant for a user that receives answers on inbox.
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

// tokens returns checked names as subject tokens.
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

// controls returns the subjects of control requests about agents.
func controls(agents []string, verbs ...string) (all []string) {
	for _, agent := range agents {
		for _, verb := range verbs {
			all = append(all, "hook.v1.ctl."+verb+"."+agent)
		}
	}
	return all
}

// asker adds what a shim needs: to send events, to deliver and acknowledge messages, to store
// conversations, and to fetch the policy for outages.
func asker(p *Permissions, agents []string) {
	for _, agent := range agents {
		p.Publish = append(p.Publish, "hook.v1.event."+agent+".>")
	}
	p.Publish = append(p.Publish, controls(agents, schema.VerbAck, schema.VerbFetch, schema.VerbDrain, schema.VerbMode, schema.VerbCheckpoint,
		schema.VerbAnswer, schema.VerbRecord, schema.VerbKeep)...)
	p.Publish = append(p.Publish, controls([]string{"_"}, schema.VerbPolicy)...)
}

// The streams that operators use. This package is below bus/state, so a test compares the names.
const (
	objectStream = "OBJ_hook_objects"
	objectKeys   = "$O.hook_objects."
	recordStream = "hook_record"
)

// longestCall is how long a worker may answer a batch: the longest possible call. It costs the server a
// few bytes per batch in progress.
const longestCall = 24 * time.Hour

// runner adds what a worker needs: batches of its pools and one answer for each, heartbeats, the
// configuration, and the parts of conversations that hooks need. It gets them from brokers, without
// access to stored data.
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

// operator adds what operators need: all control requests, the feed, storing texts that are too long
// for a message, and reading the record.
func operator(p *Permissions) {
	p.Publish = append(p.Publish, "hook.v1.ctl.*.*",
		objectKeys+"C.*", objectKeys+"M.*",
		"$JS.API.STREAM.INFO."+objectStream, "$JS.API.STREAM.MSG.GET."+objectStream, "$JS.API.STREAM.PURGE."+objectStream,
		"$JS.API.STREAM.INFO."+recordStream, "$JS.API.CONSUMER.CREATE."+recordStream+".*",
		"$JS.API.CONSUMER.MSG.NEXT."+recordStream+".*", "$JS.API.CONSUMER.DELETE."+recordStream+".*")
	p.Subscribe = append(p.Subscribe, "hook.v1.feed.*")
}

// orchestrator adds what programs that start agents need: to send and withdraw messages, to manage
// rounds, and to observe the agents.
func orchestrator(p *Permissions, agents []string) {
	p.Publish = append(p.Publish, controls(agents, schema.VerbInject, schema.VerbAnswer, schema.VerbRelay, schema.VerbRound, schema.VerbPending,
		schema.VerbWithdraw, schema.VerbMode, schema.VerbCheckpoint)...)
	p.Publish = append(p.Publish, controls([]string{"_"}, "status")...)
	for _, agent := range agents {
		p.Subscribe = append(p.Subscribe, "hook.v1.feed."+agent)
	}
	p.Subscriptions = 256 + int64(len(agents))
}

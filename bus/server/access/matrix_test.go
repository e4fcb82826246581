package access_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// publishing returns one subject of each class.
func publishing() []string {
	all := []string{
		"hook.v1.event.a.PreToolUse", "hook.v1.event.a.PreToolUse.again", "hook.v1.event.b.PreToolUse", "hook.v1.event.c.PreToolUse.again",
		"hook.v1.run.p", "hook.v1.run.p.w", "hook.v1.run.q.w", "hook.v1.beat.p.w", "hook.v1.beat.q.w",
		"hook.v1.feed.a", "hook.v1.feed._", "hook.v1.config", "hook.v1.reply.x.1", "_INBOX.x.y", "_INBOX_UOTHER.x.y", "anything",
		"$KV.hook_config.current", "$KV.hook_config.v.1", "$KV.hook_injections.a-a.operator.1", "$KV.hook_keys.seed",
		"$O.hook_objects.C.x", "$O.hook_histories.M.x",
		"$SRV.PING", "$SRV.PING.hookfabric-aggregator", "$SYS.REQ.SERVER.PING", "$JS.ACK.KV_hook_config.c.1.1.1.1.1",
		"$JS.API.INFO", "$JS.API.STREAM.LIST", "$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.DELETE.KV_hook_config",
		"$JS.API.STREAM.UPDATE.KV_hook_config", "$JS.API.STREAM.PURGE.KV_hook_config", "$JS.API.STREAM.MSG.DELETE.KV_hook_config",
		"$JS.API.STREAM.SNAPSHOT.KV_hook_injections", "$JS.API.CONSUMER.CREATE.KV_hook_config.c.$KV.hook_config.current",
		"$JS.API.CONSUMER.CREATE.KV_hook_injections", "$JS.API.CONSUMER.DURABLE.CREATE.KV_hook_injections.d",
		"$JS.API.CONSUMER.CREATE.hook_record.c", "$JS.API.CONSUMER.CREATE.hook_record.c.hook.v1.record.b", "$JS.API.CONSUMER.DURABLE.CREATE.hook_record.c",
		"$JS.API.CONSUMER.MSG.NEXT.hook_record.c", "$JS.API.CONSUMER.DELETE.hook_record.c", "$JS.API.CONSUMER.INFO.hook_record.c", "$JS.ACK.hook_record.c.1.1.1.1.1",
		"$JS.API.DIRECT.GET.hook_record", "$JS.API.STREAM.DELETE.hook_record", "$JS.API.STREAM.PURGE.hook_record", "$JS.API.STREAM.PURGE.OBJ_hook_objects",
		"$JS.API.DIRECT.GET.KV_hook_config.$KV.hook_config.current", "$JS.API.DIRECT.GET.KV_hook_keys.$KV.hook_keys.seed",
		"$JS.API.DIRECT.GET.KV_hook_injections.$KV.hook_injections.a-a.operator.1",
	}
	for _, stream := range []string{"KV_hook_config", "KV_hook_keys", "KV_hook_injections", "KV_hook_sequences", "OBJ_hook_objects", "OBJ_hook_histories", "hook_record"} {
		all = append(all, "$JS.API.STREAM.INFO."+stream, "$JS.API.STREAM.MSG.GET."+stream)
	}
	for _, verb := range verbs() {
		for _, agent := range []string{"a", "b", "c", "_"} {
			all = append(all, "hook.v1.ctl."+verb+"."+agent)
		}
	}
	return all
}

func verbs() []string {
	return []string{"status", "config", "hooks", "freeze", "thaw", "a-verb-to-come",
		schema.VerbInject, schema.VerbPending, schema.VerbWithdraw, schema.VerbAck, schema.VerbDrain, schema.VerbFetch, schema.VerbAnswer, schema.VerbRelay,
		schema.VerbMode, schema.VerbCheckpoint, schema.VerbRound, schema.VerbPolicy, schema.VerbRecord, schema.VerbKeep, schema.VerbPart, schema.VerbFollow}
}

// subscribing returns one subject of each class. OWN stands for the client's own inbox.
func subscribing() []string {
	return []string{
		"OWN.>", "OWN.x.y", "_INBOX_UOTHER.>", "_INBOX.>", "_INBOX_UOTHER.x", "*.*", ">",
		"hook.>", "hook.v1.event.*.*", "hook.v1.event.a.>", "hook.v1.ctl.>", "hook.v1.ctl.inject.b",
		"hook.v1.run.p", "hook.v1.run.p.w", "hook.v1.run.p.*", "hook.v1.run.q", "hook.v1.run.q.w", "hook.v1.run.>", "hook.v1.beat.*.*", "hook.v1.beat.p.w",
		"hook.v1.feed.a", "hook.v1.feed.b", "hook.v1.feed._", "hook.v1.feed.*", "hook.v1.config", "hook.v1.reply.>",
		"$KV.>", "$KV.hook_config.>", "$KV.hook_injections.>", "$O.>", "$JS.API.>", "$JS.EVENT.>", "$SYS.>",
		"$SRV.PING", "$SRV.INFO.hookfabric-worker", "$SRV.STATS.hookfabric-worker.id", "$SRV.PING.hookfabric-aggregator", "$SRV.>",
	}
}

// A row is a role with the subjects that it may use, of all classes.
type row struct {
	grant              access.Grant
	publish, subscribe []string
	all                bool
}

func controls(agents string, verbs ...string) (all []string) {
	for agent := range strings.SplitSeq(agents, " ") {
		for _, v := range verbs {
			all = append(all, "hook.v1.ctl."+v+"."+agent)
		}
	}
	return all
}

func matrix() map[string]row {
	askers := []string{"ack", "fetch", "drain", "mode", "checkpoint", "answer", "record", "keep"}
	own := []string{"OWN.>", "OWN.x.y"}
	return map[string]row{
		"an agent": {
			grant:     access.Grant{Role: access.Agent, Agents: []string{"a"}},
			publish:   slices.Concat([]string{"hook.v1.event.a.PreToolUse", "hook.v1.event.a.PreToolUse.again", "hook.v1.ctl.policy._"}, controls("a", askers...)),
			subscribe: own,
		},
		"a host of two agents": {
			grant: access.Grant{Role: access.Host, Agents: []string{"a", "b"}},
			publish: slices.Concat([]string{"hook.v1.event.a.PreToolUse", "hook.v1.event.a.PreToolUse.again", "hook.v1.event.b.PreToolUse", "hook.v1.ctl.policy._"},
				controls("a b", askers...)),
			subscribe: own,
		},
		"a host of all": {
			grant: access.Grant{Role: access.Host, Agents: []string{access.Everyone}},
			publish: slices.Concat([]string{"hook.v1.event.a.PreToolUse", "hook.v1.event.a.PreToolUse.again", "hook.v1.event.b.PreToolUse",
				"hook.v1.event.c.PreToolUse.again", "hook.v1.ctl.policy._"}, controls("a b c _", askers...)),
			subscribe: own,
		},
		"a worker": {
			grant:   access.Grant{Role: access.Worker, Pools: []string{"p"}},
			publish: append(controls("_", "follow", "part"), "hook.v1.beat.p.w"),
			subscribe: slices.Concat(own, []string{"hook.v1.run.p", "hook.v1.run.p.w", "hook.v1.run.p.*", "hook.v1.config",
				"$SRV.PING", "$SRV.INFO.hookfabric-worker", "$SRV.STATS.hookfabric-worker.id"}),
		},
		"an orchestrator": {
			grant:     access.Grant{Role: access.Orchestrator, Agents: []string{"a"}},
			publish:   append(controls("a", "inject", "answer", "relay", "round", "pending", "withdraw", "mode", "checkpoint"), "hook.v1.ctl.status._"),
			subscribe: append(slices.Clone(own), "hook.v1.feed.a"),
		},
		"an operator": {
			grant: access.Grant{Role: access.Operator},
			publish: slices.Concat(controls("a b c _", verbs()...), []string{"$O.hook_objects.C.x",
				"$JS.API.STREAM.INFO.OBJ_hook_objects", "$JS.API.STREAM.MSG.GET.OBJ_hook_objects", "$JS.API.STREAM.PURGE.OBJ_hook_objects",
				"$JS.API.STREAM.INFO.hook_record", "$JS.API.CONSUMER.CREATE.hook_record.c",
				"$JS.API.CONSUMER.MSG.NEXT.hook_record.c", "$JS.API.CONSUMER.DELETE.hook_record.c"}),
			subscribe: append(slices.Clone(own), "hook.v1.feed.a", "hook.v1.feed.b", "hook.v1.feed._", "hook.v1.feed.*"),
		},
		"a broker": {grant: access.Grant{Role: access.Broker}, all: true},
	}
}

// A real server must permit exactly the subjects of the table.
func TestEachRoleMayUseExactlyItsSubjects(t *testing.T) {
	s, dir := asking(t)
	for name, r := range matrix() {
		t.Run(name, func(t *testing.T) {
			c := connected(t, s, dir, r.grant)
			for _, subject := range publishing() {
				c.publishes(subject, r.all || slices.Contains(r.publish, subject))
			}
			for _, subject := range subscribing() {
				c.subscribes(subject, r.all || slices.Contains(r.subscribe, subject))
			}
			for _, expected := range slices.Concat(r.publish, r.subscribe) {
				if !slices.Contains(publishing(), expected) && !slices.Contains(subscribing(), expected) {
					t.Errorf("%s is in no class", expected)
				}
			}
		})
	}
}

// asking starts a server that requires credentials, and returns the realm's folder.
func asking(t *testing.T) (*server.Server, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "auth")
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	return bustest.StartWith(t, server.Options{Auth: dir}), dir
}

// issue makes credentials and returns their file and the user.
func issue(t *testing.T, dir string, i realm.Issue) (string, realm.User) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "user.creds")
	u, err := realm.Add(t.Context(), dir, i, func(creds []byte) error { return os.WriteFile(file, creds, 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	return file, u
}

// A caller is a client with credentials, and a connection that sees all messages.
type caller struct {
	t      *testing.T
	nc     *nats.Conn
	all    *nats.Conn
	heard  chan *nats.Msg // what reached the bus
	denied chan error
	inbox  string
}

func connected(t *testing.T, s *server.Server, dir string, g access.Grant) *caller {
	t.Helper()
	file, u := issue(t, dir, realm.Issue{Name: strings.ReplaceAll(t.Name(), "/", " "), Grant: g})
	c := &caller{t: t, heard: make(chan *nats.Msg, 100), denied: make(chan error, 100), inbox: access.Inbox(u.Key)}
	var err error
	if c.all, err = s.Connect(t.Context(), bus.Options{Name: "all"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.all.Close)
	if _, err := c.all.Subscribe(">", func(m *nats.Msg) { c.heard <- m }); err != nil {
		t.Fatal(err)
	}
	c.flush(c.all)
	c.nc, err = bus.Connect(t.Context(), bus.Options{InProcess: s, Creds: file, Name: "caller", OnDenied: func(err error) { c.denied <- err }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.nc.Close)
	return c
}

func (c *caller) flush(nc *nats.Conn) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// publishes checks whether a message arrives, or the server denies it.
func (c *caller) publishes(subject string, may bool) {
	c.t.Helper()
	if err := c.nc.Publish(subject, []byte("probe")); err != nil {
		c.t.Fatal(err)
	}
	c.flush(c.nc)
	got := c.outcome(subject, func(m *nats.Msg) bool { return m.Subject == subject && string(m.Data) == "probe" })
	if got != may {
		c.t.Errorf("publishing on %s: %v, want %v", subject, got, may)
	}
}

// outcome reports whether a message came, and not a denial. Exactly one of them comes.
func (c *caller) outcome(subject string, is func(*nats.Msg) bool) bool {
	c.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		select {
		case m := <-c.heard:
			if is(m) {
				return true
			}
		case err := <-c.denied:
			if strings.Contains(err.Error(), `"`+subject+`"`) {
				return false
			}
		case <-limit.C:
			c.t.Fatalf("%s was neither permitted nor denied", subject)
		}
	}
}

// subscribes checks the same for a subscription, with a message that it should receive.
func (c *caller) subscribes(subject string, may bool) {
	c.t.Helper()
	subject = strings.Replace(subject, "OWN", c.inbox, 1)
	heard := make(chan *nats.Msg, 1000)
	sub, err := c.nc.ChanSubscribe(subject, heard)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	c.flush(c.nc)
	probe := strings.NewReplacer("*", "x", ">", "x.y").Replace(subject)
	if err := c.all.Publish(probe, []byte("probe")); err != nil {
		c.t.Fatal(err)
	}
	c.flush(c.all)
	c.flush(c.nc) // all messages from the server have arrived
	got := false
	for len(heard) > 0 {
		m := <-heard // messages that have arrived
		got = got || m.Subject == probe
	}
	if got != may {
		c.t.Errorf("subscribing to %s: %v, want %v", subject, got, may)
	}
	if !may && !c.outcomeDenied(subject) {
		c.t.Errorf("the denial of %s is not reported", subject)
	}
}

func (c *caller) outcomeDenied(subject string) bool {
	return !c.outcome(subject, func(*nats.Msg) bool { return false })
}

// A worker may answer each request once.
func TestAWorkerMayAnswerOnlyRequests(t *testing.T) {
	s, dir := asking(t)
	c := connected(t, s, dir, access.Grant{Role: access.Worker, Pools: []string{"p"}})
	batches := make(chan *nats.Msg, 1)
	if _, err := c.nc.ChanSubscribe("hook.v1.run.p.w", batches); err != nil {
		t.Fatal(err)
	}
	c.flush(c.nc)
	reply := c.all.NewInbox()
	if err := c.all.PublishRequest("hook.v1.run.p.w", reply, []byte("batch")); err != nil {
		t.Fatal(err)
	}
	m := <-batches
	for i, may := range []bool{true, false} {
		if err := c.nc.Publish(m.Reply, []byte("probe")); err != nil {
			t.Fatal(err)
		}
		got := c.outcome(reply, func(m *nats.Msg) bool { return m.Subject == reply && string(m.Data) == "probe" })
		if got != may {
			t.Errorf("answer %d: %v", i+1, got)
		}
	}
	c.publishes(c.all.NewInbox(), false)
}

func TestInvalidGrantsAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		grant access.Grant
		want  string
	}{
		"the zero grant":          {access.Grant{}, "there is no role"},
		"an unknown role":         {access.Grant{Role: "king"}, "use agent, host, worker, operator, orchestrator or broker"},
		"an agent without a name": {access.Grant{Role: access.Agent}, "one agent"},
		"two agents":              {access.Grant{Role: access.Agent, Agents: []string{"a", "b"}}, "one agent"},
		"an agent that is all":    {access.Grant{Role: access.Agent, Agents: []string{"*"}}, "one agent"},
		"a host without agents":   {access.Grant{Role: access.Host}, "write --agents"},
		"a host of all and some":  {access.Grant{Role: access.Host, Agents: []string{"*", "a"}}, "'*' alone"},
		"one without agents":      {access.Grant{Role: access.Orchestrator}, "write --agents"},
		"a worker without a pool": {access.Grant{Role: access.Worker}, "--pool"},
		"a worker with agents":    {access.Grant{Role: access.Worker, Pools: []string{"p"}, Agents: []string{"a"}}, "a worker takes no --agents"},
		"an operator with a pool": {access.Grant{Role: access.Operator, Pools: []string{"p"}}, "an operator takes no --pool"},
		"an empty name":           {access.Grant{Role: access.Agent, Agents: []string{""}}, "is empty"},
		"a name that is too long": {access.Grant{Role: access.Worker, Pools: []string{strings.Repeat("x", 200)}}, "at most 128"},
		"too many names":          {access.Grant{Role: access.Host, Agents: make([]string, 101)}, "create several"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.grant.Permissions("_INBOX_U"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// Wildcards in names are ordinary characters.
func TestNamesAreNoPatterns(t *testing.T) {
	for _, name := range []string{"a.b", ">", "a*", "*.*", "_", "ä"} {
		p, err := access.Grant{Role: access.Agent, Agents: []string{name}}.Permissions("_INBOX_U")
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		for _, subject := range p.Publish {
			if strings.Contains(strings.TrimSuffix(subject, ".>"), ">") || strings.Contains(subject, "*") || strings.HasSuffix(subject, "._") && !strings.HasSuffix(subject, ".policy._") {
				t.Errorf("%q may publish on %s", name, subject)
			}
		}
	}
}

// Their names are in two packages.
func TestTheStreamsAreThoseOfTheState(t *testing.T) {
	p, err := access.Grant{Role: access.Operator}.Permissions("_INBOX_U")
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"$JS.API.STREAM.MSG.GET.OBJ_" + objects.Bucket, "$O." + objects.Bucket + ".C.*", "$JS.API.STREAM.INFO." + record.Name} {
		if !slices.Contains(p.Publish, subject) {
			t.Errorf("%s is not among %q", subject, p.Publish)
		}
	}
}

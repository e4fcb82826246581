package decide_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// asking is a fabric that authenticates its clients, and has a certificate.
type asking struct {
	*bustest.Fabric

	t      *testing.T
	server *server.Server
	realm  string
	link   decide.Link // of the agent alice
	said   said
	third  string // an authority that signed no certificate here
}

func startAsking(t *testing.T) *asking {
	t.Helper()
	ca := bustest.NewAuthority(t, "ours")
	a := &asking{Fabric: bustest.NewFabric("f-1"), t: t, realm: filepath.Join(t.TempDir(), "auth"), third: bustest.NewAuthority(t, "theirs").File}
	if err := realm.Init(t.Context(), a.realm, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: a.realm, TLS: ca.Issue(t, "server")})
	a.server = s
	nc, err := bus.Connect(t.Context(), bus.Options{InProcess: s, Creds: a.issue(realm.Issue{Name: "broker", Grant: access.Grant{Role: access.Broker}})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	a.Version, a.Signer = 7, bustest.Signer(1)
	a.FreezeVersion, a.Freezes = 1, []schema.Freeze{{Agents: "*", Reason: "odd", By: "me", Since: time.Now().UTC()}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Serve(ctx, nc); err != nil {
		t.Fatal(err)
	}
	a.link = decide.Link{URL: s.ClientURL(), Creds: a.issue(alice()), TLS: certs.Files{CA: ca.File}, Name: "shim", State: t.TempDir(), Stderr: &a.said}
	return a
}

func alice() realm.Issue {
	return realm.Issue{Name: "alice", Grant: access.Grant{Role: access.Agent, Agents: []string{"alice"}}}
}

// issue writes new credentials to a file, and returns its path.
func (a *asking) issue(i realm.Issue) string {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), i.Name+".creds")
	if _, err := realm.Add(a.t.Context(), a.realm, i, func(creds []byte) error { return os.WriteFile(file, creds, 0o600) }); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// revoke revokes the agent's credentials, and returns when the server knows it.
func (a *asking) revoke() {
	a.t.Helper()
	if _, err := realm.Revoke(a.t.Context(), a.realm, "", "alice"); err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	defer cancel()
	for {
		nc, err := bus.Connect(ctx, bus.Options{URL: a.link.URL, Creds: a.link.Creds, TLS: a.link.TLS})
		switch {
		case errors.Is(err, bus.ErrRefused):
			return
		case err != nil:
			a.t.Fatal(err)
		}
		nc.Close()
	}
}

// asks asks about a call that no fail-closed hook guards, as a shim with --unreachable allow.
func (a *asking) asks(j *decide.Judge, agent string) decide.Judgement {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	q := calls("Read")
	q.Event.AgentID = agent
	got := j.Ask(ctx, q)
	j.Handed(ctx, got.Verdict, 100*time.Millisecond)
	return got
}

// wantsRefused checks that a call was denied, with that sentence.
func (a *asking) wantsRefused(got decide.Judgement, sentence string) {
	a.t.Helper()
	v := got.Verdict
	if v.Decision != schema.Deny || got.Unjudged == nil || !strings.Contains(v.Reason, sentence) || !strings.Contains(v.Reason, "This is not an outage") {
		a.t.Errorf("%+v; want a refusal that says %q; it said %s", v, sentence, &a.said)
	}
}

// Rejected credentials or certificates are no outage: no call passes, with any policy and any value of
// --unreachable.
func TestARefusalIsNoOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with func(a *asking)
		says string
	}{
		"no credentials":                {func(a *asking) { a.link.Creds = "" }, "this fabric requires credentials"},
		"credentials that were revoked": {func(a *asking) { a.revoke() }, "they were revoked"},
		"credentials that expired": {func(a *asking) {
			i := alice()
			i.Name, i.For = "short", time.Second
			a.link.Creds = a.issue(i)
			a.expire()
		}, "expired at"},
		"a credentials file that is gone":   {func(a *asking) { a.link.Creds += "2" }, "cannot read the credentials file"},
		"a file without credentials":        {func(a *asking) { a.junk() }, "has no credentials of a NATS user"},
		"a server of another authority":     {func(a *asking) { a.link.TLS.CA = a.third }, "name that authority's certificate with --tls-ca"},
		"an authority that is not named":    {func(a *asking) { a.link.TLS.CA = "" }, "name that authority's certificate with --tls-ca"},
		"an authority's file that is gone":  {func(a *asking) { a.link.TLS.CA += "2" }, "cannot read the certificates"},
		"a certificate to show that is bad": {func(a *asking) { a.link.TLS.Cert, a.link.TLS.Key = a.third, a.third }, "cannot use the certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAsking(t)
			c.with(a)
			j := decide.New(a.link)
			defer j.Close()
			a.wantsRefused(a.asks(j, "alice"), c.says)
			after := decide.Question{Event: &schema.Event{HookType: schema.PostToolUse, AgentID: "alice", ToolName: "Read"}}
			if got := j.Ask(t.Context(), after); got.Verdict.Decision != schema.None || len(got.Verdict.HookErrors) != 2 {
				t.Errorf("what has happened already: %+v", got.Verdict)
			}
		})
	}
}

// junk replaces the link's credentials by a file without credentials.
func (a *asking) junk() {
	a.t.Helper()
	a.link.Creds = filepath.Join(a.t.TempDir(), "junk")
	if err := os.WriteFile(a.link.Creds, []byte("junk"), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// expire waits until the link's credentials have expired. Their expiry is in whole seconds.
func (a *asking) expire() {
	a.t.Helper()
	_, end, err := bus.CredsTimes(a.link.Creds)
	if err != nil {
		a.t.Fatal(err)
	}
	<-time.After(time.Until(end) + time.Second)
}

// The bus rejects an agent whose name differs from that in its credentials, and the operator sees the attempt.
func TestAnAgentThatTheCredentialsAreNotForIsRefusedAndRecorded(t *testing.T) {
	a := startAsking(t)
	j := decide.NewResident(a.link)
	defer j.Close()
	a.wantsRefused(a.asks(j, "bob"), `the agent is called "bob" here`)
	a.Lock()
	recorded := a.Recorded
	a.Unlock()
	if len(recorded) != 1 || recorded[0].Decision != schema.Deny || !strings.Contains(recorded[0].Why, `asked as the agent "bob"`) {
		t.Fatalf("on the fabric's record: %+v; %s", recorded, &a.said)
	}
	if got := a.asks(j, "alice"); got.Unjudged != nil {
		t.Errorf("the agent that they are for: %+v", got)
	}
}

// An unreadable event names no agent. Credentials for one agent do not permit a question about it, although
// they are valid.
func TestAnEventWithoutAnAgentDoesNotBlameTheCredentials(t *testing.T) {
	for name, unreadable := range map[string]error{"junk": errors.New("the payload is not valid JSON"), "a name that cannot be sent": nil} {
		t.Run(name, func(t *testing.T) {
			a := startAsking(t)
			a.link.Log = slog.New(slog.NewTextHandler(&a.said, nil))
			j := decide.NewResident(a.link)
			defer j.Close()
			e := &schema.Event{HookType: schema.PreToolUse, AgentID: schema.UnknownAgent, ToolName: "Bash"}
			got := j.Ask(t.Context(), decide.Question{Event: e, Unreadable: unreadable})
			a.wantsRefused(got, "the event cannot be read, or names no agent, so no hook judged this call")
			a.wantsRefused(got, "name the agent with --agent")
			if unreadable != nil {
				a.wantsRefused(got, unreadable.Error())
			}
			a.Lock()
			recorded := a.Recorded
			a.Unlock()
			if len(recorded) != 1 || recorded[0].Agent != schema.UnknownAgent {
				t.Fatalf("on the fabric's record: %+v", recorded)
			}
			for what, text := range map[string]string{
				"reason": got.Verdict.Reason, "errors": strings.Join(got.Verdict.HookErrors, "\n"), "record": recorded[0].Why, "log": a.said.String(),
			} {
				if strings.Contains(text, "accept each other") || strings.Contains(text, "is called") || strings.Contains(text, "not for that") ||
					strings.Contains(text, "does not permit") {
					t.Errorf("the %s blames the credentials: %s", what, text)
				}
			}
			if got := a.asks(j, "alice"); got.Unjudged != nil {
				t.Errorf("the agent that they are for: %+v", got)
			}
		})
	}
}

// Credentials for any agent permit a question about it.
func TestAnEventWithoutAnAgentIsJudgedForAHostOfAnyAgent(t *testing.T) {
	a := startAsking(t)
	a.link.Creds = a.issue(realm.Issue{Name: "host", Grant: access.Grant{Role: access.Host, Agents: []string{"*"}}})
	j := decide.NewResident(a.link)
	defer j.Close()
	e := &schema.Event{HookType: schema.PreToolUse, AgentID: schema.UnknownAgent, ToolName: "Bash"}
	if got := j.Ask(t.Context(), decide.Question{Event: e, Unreadable: errors.New("junk")}); got.Unjudged != nil {
		t.Errorf("%+v; it said %s", got, &a.said)
	}
}

// A connected shim is rejected from the moment at which its credentials are revoked.
func TestRevokedCredentialsRefuseWhoIsConnected(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	j := decide.NewResident(a.link)
	defer j.Close()
	if got := a.asks(j, "alice"); got.Unjudged != nil {
		t.Fatalf("%+v", got)
	}
	a.revoke()
	var got decide.Judgement
	for end := time.Now().Add(20 * time.Second); !errors.Is(got.Unjudged, bus.ErrRefused) && time.Now().Before(end); {
		got = a.asks(j, "alice") // the server closes the connection first, and rejects the next one
	}
	a.wantsRefused(got, "they were revoked")
}

// Credentials that the bus rejects for some time after too many requests are no outage. Otherwise their owner
// could choose which calls no hook judges. After that time the bus accepts them again.
func TestACallOfWhoSendsTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	a := startAsking(t)
	sys, err := a.server.ConnectSystem(t.Context(), bus.Options{Name: "system"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sys.Close)
	cut := make(chan string, 10)
	if err := a.server.BoundConnections(t.Context(), sys, slog.New(slog.DiscardHandler), server.Flood{Messages: 1000, Sent: func(name string) { cut <- name }}); err != nil {
		t.Fatal(err)
	}
	j := decide.NewResident(a.link)
	defer j.Close()
	if got := a.asks(j, "alice"); got.Unjudged != nil {
		t.Fatalf("%+v", got)
	}
	nc, err := bus.Connect(t.Context(), bus.Options{URL: a.link.URL, Creds: a.link.Creds, TLS: a.link.TLS})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for len(cut) == 0 {
		_ = nc.Publish("hook.v1.event.alice.PreToolUse", []byte("x")) // a rejected message serves the purpose, too
	}
	nc.Close()
	var got decide.Judgement
	for end := time.Now().Add(20 * time.Second); got.Unjudged == nil && time.Now().Before(end); {
		got = a.asks(j, "alice")
	}
	const says = "because they sent too much"
	a.wantsRefused(got, says)
	fresh := decide.New(a.link)
	defer fresh.Close()
	a.wantsRefused(a.asks(fresh, "alice"), says)
	for end := time.Now().Add(30 * time.Second); got.Unjudged != nil && time.Now().Before(end); {
		if got = a.asks(j, "alice"); got.Unjudged != nil {
			a.wantsRefused(got, says)
		}
	}
	if got.Unjudged != nil {
		t.Errorf("after that: %+v", got)
	}
}

package fabric_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// startAsking is start for a fabric that requires credentials.
func startAsking(t *testing.T, yaml string) *fabric {
	t.Helper()
	f := &fabric{t: t, dir: t.TempDir(), log: newLogbook()}
	if err := realm.Init(t.Context(), f.realm(), realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.start(yaml)
	return f
}

func (f *fabric) realm() string { return filepath.Join(f.dir, "data", "auth") }

// issue makes credentials, and returns their file.
func (f *fabric) issue(name string, g access.Grant) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name+".creds")
	_, err := realm.Add(f.t.Context(), f.realm(), realm.Issue{Name: name, Grant: g}, func(creds []byte) error { return os.WriteFile(path, creds, 0o600) })
	if err != nil {
		f.t.Fatal(err)
	}
	return path
}

// as connects a client with the credentials of a grant.
func (f *fabric) as(name string, g access.Grant) *nats.Conn {
	f.t.Helper()
	nc, err := bus.Connect(f.t.Context(), bus.Options{InProcess: f.broker, Name: workers.ConnectionPrefix + name, Creds: f.issue(name, g),
		OnDenied: func(err error) { f.t.Errorf("%s: %v", name, err) }})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)
	return nc
}

// shimOf is a client of an agent with credentials of its own.
func (f *fabric) shimOf(agent string) *client.Client {
	f.t.Helper()
	c, err := client.Connect(f.t.Context(), client.Options{InProcess: f.broker, Timeout: time.Minute, Logger: slog.New(f.log),
		Creds: f.issue(agent, access.Grant{Role: access.Agent, Agents: []string{agent}})})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return c
}

func bashCall(agent string) *schema.Event {
	return &schema.Event{HookType: schema.PreToolUse, AgentID: agent, ToolName: "Bash", ToolInput: []byte(`{"command":"ls"}`)}
}

// controlled makes a control request, and reads its answer.
func controlled(t *testing.T, nc *nats.Conn, verb, agent string, request, answer any) error {
	t.Helper()
	subject, err := bus.ControlSubject(verb, agent)
	body, merr := schema.Marshal(request)
	if err := errors.Join(err, merr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return err
	}
	if said := m.Header.Get(schema.HeaderServiceError); said != "" {
		return errors.New(said)
	}
	return schema.Unmarshal(m.Data, answer)
}

// TestScenariosOfCredentials: everybody does what their credentials are for, and no more.
func TestScenariosOfCredentials(t *testing.T) {
	inBubbles(t, []scenario{
		{"an agent, a worker, an orchestrator and an operator do their work", func(t *testing.T) {
			f := startAsking(t, `{presets: [delivery], hooks: {PreToolUse: [{name: sees, type: builtin, handler: sees, pool: go, needs: [history]}]}}`)
			worker := f.as("w", access.Grant{Role: access.Worker, Pools: []string{"go"}})
			f.serveOn(worker, "go", map[string]workers.Handler{"sees": workers.HandlerFunc(sums)})
			synctest.Wait()
			alice := f.shimOf("alice")
			orchestrator := f.as("o", access.Grant{Role: access.Orchestrator, Agents: []string{"alice"}})
			var receipt schema.Receipt
			if err := controlled(t, orchestrator, schema.VerbInject, "alice", schema.InjectRequest{Content: "the tests moved"}, &receipt); err != nil {
				t.Fatal(err)
			}
			all := talk(200)
			ask := func() *schema.Verdict {
				e := bashCall("alice")
				v, err := alice.Ask(t.Context(), e, client.History(func() []schema.Message { return all }))
				if err != nil {
					t.Fatal(err)
				}
				alice.Handed(v.EventID)
				return v
			}
			ask()
			after := bashCall("alice")
			after.HookType, after.ToolOutput = schema.PostToolUse, []byte(`"done"`)
			v, err := alice.Ask(t.Context(), after)
			if err != nil || !strings.Contains(contents(v), "the tests moved") {
				t.Fatalf("%+v, %v", v, err)
			}
			alice.Handed(v.EventID)
			if v = ask(); !strings.Contains(contents(v), summed(all)) { // by now it is known that a hook needs the conversation
				t.Errorf("%s: %+v", contents(v), v.ExecutedHooks)
			}
			operator := f.as("op", access.Grant{Role: access.Operator})
			var status schema.FabricStatus
			if err := controlled(t, operator, "status", "", schema.StatusRequest{Agents: true}, &status); err != nil || len(status.Pools) == 0 {
				t.Errorf("%+v, %v", status, err)
			}
			var applied schema.ConfigAnswer
			err = controlled(t, operator, "config", "", schema.ConfigRequest{Action: schema.ActionApply, File: "hooks.yaml", Dir: f.dir,
				Source: `{hooks: {PreToolUse: [{name: sees, type: builtin, handler: sees, pool: go}, {name: no, type: builtin, handler: deny}]}}`}, &applied)
			if err != nil || applied.Refused {
				t.Fatalf("%+v, %v", applied, err)
			}
			began := time.Now()
			if v = ask(); v.Decision != schema.Deny || v.ConfigVersion != applied.Version || len(v.ExecutedHooks) != 2 || v.ExecutedHooks[0].Outcome != schema.OK {
				t.Errorf("%+v", v)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("the worker took %v to hear of the configuration", took)
			}
		}},
		{"a shim that lies in the subject is refused at once", func(t *testing.T) {
			f := startAsking(t, `{}`)
			alice := f.shimOf("alice")
			began := time.Now()
			_, err := alice.Ask(t.Context(), bashCall("bob"))
			if !errors.Is(err, client.ErrDenied) || !errors.Is(err, client.ErrUnreachable) || time.Since(began) > time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if err == nil || !strings.Contains(err.Error(), `the agent is called "bob" here, but the credentials`) {
				t.Errorf("it is said as %v", err)
			}
			if _, err := alice.Drain(t.Context(), "bob", ""); !errors.Is(err, client.ErrDenied) || time.Since(began) > 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if _, err := alice.Ask(t.Context(), bashCall("alice")); err != nil {
				t.Error(err)
			}
		}},
		{"a shim that lies in the body or in headers changes nothing of what handlers see", func(t *testing.T) {
			f := startAsking(t, `{hooks: {PreToolUse: [{name: sees, type: builtin, handler: sees, pool: go}]}}`)
			var mu sync.Mutex
			var seen []*schema.Event
			f.serveOn(f.as("w", access.Grant{Role: access.Worker, Pools: []string{"go"}}), "go", map[string]workers.Handler{
				"sees": workers.HandlerFunc(func(_ context.Context, e *schema.Event) (r schema.Result, err error) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, e)
					return r, nil
				})})
			synctest.Wait()
			alice := f.as("alice", access.Grant{Role: access.Agent, Agents: []string{"alice"}})
			r := schema.Routing{Session: "s", Tool: "Bash", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"}
			m := bus.EventMsg("hook.v1.event.alice.PreToolUse", r, 1, 30*time.Second, nil, []byte(`{"agent_id":"bob","hook_type":"PreToolUse","tool_name":"Bash","tool_input":{}}`))
			m.Header[schema.HeaderAgent] = []string{"bob"}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := alice.RequestMsgWithContext(ctx, m); err != nil {
				t.Fatal(err)
			}
			if len(seen) != 1 || seen[0].AgentID != "alice" {
				t.Errorf("the handler saw %+v", seen)
			}
		}},
		{"an answer that is sent to a request's subject is no request", func(t *testing.T) {
			f := startAsking(t, `{presets: [delivery]}`)
			operator := f.as("op", access.Grant{Role: access.Operator})
			var receipt schema.Receipt
			if err := controlled(t, operator, schema.VerbInject, "alice", schema.InjectRequest{Content: "mine"}, &receipt); err != nil {
				t.Fatal(err)
			}
			// What comes back of this has a member called content, and so has an injection.
			alice := f.as("alice", access.Grant{Role: access.Agent, Agents: []string{"alice"}})
			body := []byte(`{"event_id":"0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"}`)
			if err := alice.PublishRequest("hook.v1.ctl.drain.alice", "hook.v1.ctl.inject.bob", body); err != nil {
				t.Fatal(err)
			}
			// Nor is what a broker tells a worker.
			worker := f.as("w", access.Grant{Role: access.Worker, Pools: []string{"go"}})
			for _, verb := range []string{schema.VerbCheckpoint, schema.VerbMode} {
				if err := worker.PublishRequest("hook.v1.ctl.follow._", "hook.v1.ctl."+verb+".bob", nil); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(5 * time.Second)
			var pending schema.PendingAnswer
			if err := controlled(t, operator, schema.VerbPending, "", schema.PendingRequest{}, &pending); err != nil || pending.Total != 1 || pending.Items[0].Scope.Agent != "alice" {
				t.Errorf("%+v, %v", pending, err)
			}
		}},
		{"a revoked agent is cut off within two seconds", func(t *testing.T) {
			f := startAsking(t, `{}`)
			lost := make(chan bool, 10)
			nc, err := bus.Connect(t.Context(), bus.Options{InProcess: f.broker, Creds: f.issue("alice", access.Grant{Role: access.Agent, Agents: []string{"alice"}}),
				OnState: func(up bool) {
					if !up {
						lost <- true
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			began := time.Now()
			if _, err := realm.Revoke(t.Context(), f.realm(), "", "alice"); err != nil {
				t.Fatal(err)
			}
			if <-lost; time.Since(began) > 2*time.Second {
				t.Errorf("after %v", time.Since(began))
			}
		}},
	})
}

// contents is all that a verdict injects.
func contents(v *schema.Verdict) string {
	all := ""
	for _, in := range v.Injections {
		all += in.Content + "\n"
	}
	return all
}

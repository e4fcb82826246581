package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// request makes a request of the control verb "hooks" for an agent, or for all.
func (s *spread) request(ctx context.Context, agent string, req *schema.HooksRequest) (a schema.HooksAnswer, refusal *schema.ControlError, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	subject, err := bus.ControlSubject("hooks", agent)
	if err != nil {
		return a, nil, err
	}
	body, err := schema.Marshal(req)
	if err != nil {
		return a, nil, err
	}
	m, err := s.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return a, nil, err
	}
	if m.Header.Get(schema.HeaderServiceErrorCode) != "" {
		refusal = &schema.ControlError{}
		return a, refusal, schema.Unmarshal(m.Data, refusal)
	}
	return a, nil, schema.Unmarshal(m.Data, &a)
}

// hooks is request for a test that cannot go on without an answer.
func (s *spread) hooks(t testing.TB, agent string, req *schema.HooksRequest) (schema.HooksAnswer, *schema.ControlError) {
	t.Helper()
	a, refusal, err := s.request(t.Context(), agent, req)
	if err != nil {
		t.Fatal(err)
	}
	return a, refusal
}

// registered makes a request that must change the configuration.
func (s *spread) registered(t testing.TB, agent string, req *schema.HooksRequest) uint64 {
	t.Helper()
	a, refusal := s.hooks(t, agent, req)
	if refusal != nil || !a.Changed || len(a.Problems) > 0 {
		t.Fatalf("%s for %q was answered %+v, %+v", req.Action, agent, a, refusal)
	}
	return a.Version
}

func register(hooks string) *schema.HooksRequest {
	return &schema.HooksRequest{Action: schema.ActionRegister, Hooks: []byte(hooks)}
}

func unregister(names ...string) *schema.HooksRequest {
	return &schema.HooksRequest{Action: schema.ActionUnregister, Names: names}
}

// allOf are the names of hooks that answered, in order.
func allOf(names ...string) string { return strings.Join(names, ":ok ") + ":ok" }

// TestHooksAreRegisteredUnderLoad registers hooks and takes them away while
// calls are judged. Once there is an answer, every call is judged by it.
func TestHooksAreRegisteredUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	w := startWatch(t, dial(t, s.url))
	w.more(t, 50)
	for i := range changes() / 4 {
		name := fmt.Sprintf("own-%d", i)
		version := s.registered(t, "tester", register(fmt.Sprintf(`{"PreToolUse": [{"name": %q, "type": "builtin", "handler": "refuse", "pool": "crew", "readonly": true}]}`, name)))
		w.floor.Store(version)
		s.says[version] = sight{version, schema.Deny, fmt.Sprintf("refused by the hook %q", name), allOf(append(names(1), name)...)}
		// Of other agents' hooks the test's calls see nothing.
		version = s.registered(t, "other-agent", register(fmt.Sprintf(`{"PreToolUse": [{"name": "their-%d", "type": "builtin", "handler": "deny"}]}`, i)))
		w.floor.Store(version)
		after := s.says[version-1]
		after.version = version
		s.says[version] = after
		w.more(t, callers)
		version = s.registered(t, "tester", unregister(name))
		w.floor.Store(version)
		s.says[version] = promise(version, 1)
	}
	w.more(t, 50)
	all := w.finish()
	t.Log(&all)
	all.check(t, s.says)
	for _, agent := range []string{"tester", "other-agent"} {
		a, refusal := s.hooks(t, agent, &schema.HooksRequest{Action: schema.ActionList})
		if want := map[string]int{"other-agent": changes() / 4}[agent]; refusal != nil || len(a.Hooks) != want {
			t.Errorf("for %s %d hooks are registered, want %d: %+v, %v", agent, len(a.Hooks), want, a, refusal)
		}
	}
}

// TestRegisteredHooksOutliveEverything stops the whole fabric, its NATS server
// included, and starts it again on the same data; then a file is applied.
func TestRegisteredHooksOutliveEverything(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 1)
	s.registered(t, "tester", register(`{"PreToolUse": {"override": true, "hooks": [{"name": "mine", "type": "builtin", "handler": "wait", "pool": "crew"}]}}`))
	version := s.registered(t, "", register(`{"PostToolUse": [{"name": "ours", "type": "builtin", "handler": "log"}]}`))
	s.says[version] = sight{version, schema.Allow, "", "mine:ok"}
	s.checkBoth(t, version)
	s.restart(t)
	s.checkBoth(t, version)
	version = s.apply(t, 2)
	s.says[version] = sight{version, schema.Allow, "", "mine:ok"}
	s.checkBoth(t, version)
	version = s.registered(t, "tester", &schema.HooksRequest{Action: schema.ActionUnregister, Names: []string{"mine"}, Overrides: []schema.EventType{schema.PreToolUse}})
	s.says[version] = promise(version, 2)
	s.checkBoth(t, version)
	a, refusal := s.hooks(t, "", &schema.HooksRequest{Action: schema.ActionList})
	if refusal != nil || len(a.Hooks) != 1 || a.Hooks[0].Name != "ours" {
		t.Errorf("for all agents are registered %+v, %v", a, refusal)
	}
}

// restart ends all processes, the NATS server last, and starts them again.
func (s *spread) restart(t testing.TB) {
	t.Helper()
	all := append([]*process{}, s.workers...)
	for _, b := range s.brokers {
		all = append(all, b.process)
	}
	for _, p := range append(all, s.nats) {
		p.must(t, syscall.SIGTERM)
		if code, err := p.wait(); err != nil || code != 0 {
			t.Fatalf("%s ended with %d, %v:\n%s", p.name, code, err, p.said)
		}
	}
	s.startServer(t)
	for i := range s.brokers {
		s.brokers[i] = startBroker(t, "--nats", s.url)
	}
	for i := range s.workers {
		s.workers[i] = s.worker(t, i)
	}
	s.awaitWorkers(t)
}

// checkBoth asks often enough that every broker has answered, by a version.
func (s *spread) checkBoth(t testing.TB, version uint64) {
	t.Helper()
	c := dial(t, s.url)
	for range 20 {
		v, err := ask(t.Context(), c, "Tool")
		if err != nil || sightOf(v) != s.says[version] {
			t.Fatalf("a call got %+v, %v; want %+v", v, err, s.says[version])
		}
	}
}

// The requests contradict the configuration, or are invalid. They change nothing.
func TestInvalidRegistrationsAreRejected(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 1, 1)
	s.registered(t, "tester", register(`{"PreToolUse": [{"name": "mine", "type": "builtin", "handler": "wait", "pool": "crew"}]}`))
	before := s.pointer(t)
	for name, c := range map[string]struct {
		agent string
		req   *schema.HooksRequest
		code  string
		says  string
	}{
		"a name of the file":             {"tester", register(`{"PreToolUse": [{"name": "v1-a", "type": "builtin", "handler": "allow"}]}`), schema.CodeBadRequest, `"v1-a" is taken`},
		"a name of another agent's hook": {"other", register(`{"PreToolUse": [{"name": "mine", "type": "builtin", "handler": "allow"}]}`), schema.CodeBadRequest, `"mine" is taken`},
		"an unknown key":                 {"tester", register(`{"PreToolUse": [{"type": "builtin", "handler": "allow", "tiemout": 5}]}`), schema.CodeBadRequest, "tiemout"},
		"an unknown event":               {"tester", register(`{"BeforeLunch": [{"type": "builtin", "handler": "allow"}]}`), schema.CodeBadRequest, "BeforeLunch"},
		"an invalid condition":           {"tester", register(`{"PreToolUse": [{"type": "builtin", "handler": "allow", "when": "a ==="}]}`), schema.CodeBadRequest, "the condition"},
		"a list of words":                {"tester", register(`["PreToolUse"]`), schema.CodeBadRequest, "must be a mapping"},
		"no hooks":                       {"tester", &schema.HooksRequest{Action: schema.ActionRegister}, schema.CodeBadRequest, "hooks is missing"},
		"an unknown action":              {"tester", &schema.HooksRequest{Action: "enlist"}, schema.CodeBadRequest, "enlist"},
		"to end what is not registered":  {"tester", unregister("missing"), schema.CodeNotFound, "missing"},
		"to end what the file says":      {"", unregister("v1-a"), schema.CodeConflict, "v1-a"},
		"to end another agent's hook":    {"other", unregister("mine"), schema.CodeNotFound, "mine"},
		"to end an override that is not": {"tester", &schema.HooksRequest{Action: schema.ActionUnregister, Overrides: []schema.EventType{schema.PreToolUse}}, schema.CodeNotFound, "override"},
	} {
		a, refusal := s.hooks(t, c.agent, c.req)
		if refusal == nil || refusal.Code != c.code || !strings.Contains(refusal.Message, c.says) {
			t.Errorf("%s: %+v, %+v; want %s and a word of %q", name, a, refusal, c.code, c.says)
		}
	}
	a, refusal := s.hooks(t, "tester", register(`{"PreToolUse": [{"name": "riddle", "type": "builtin", "handler": "no-such-thing", "pool": "crew"}]}`))
	if refusal != nil || !a.Refused || a.Changed || len(a.Problems) != 1 || a.Problems[0].Node != "w0" {
		t.Errorf("a handler that no worker can load: %+v, %v", a, refusal)
	}
	a, refusal = s.hooks(t, "tester", register(`{"PreToolUse": [{"name": "mine", "type": "builtin", "handler": "wait", "pool": "crew"}]}`))
	if refusal != nil || a.Changed || a.Version != before.Version {
		t.Errorf("the same again: %+v, %v", a, refusal)
	}
	if after := s.pointer(t); after.Version != before.Version || after.Proposed.Version > 0 {
		t.Errorf("before: %+v, after: %+v", before, after)
	}
}

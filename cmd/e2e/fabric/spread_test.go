package fabric_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// control makes one control request and returns what was answered, or the
// error in its place.
func control[A any](f *fabric, verb, agent string, request any) (answer A, failed *schema.ControlError) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	subject, err := bus.ControlSubject(verb, agent)
	if err != nil {
		f.t.Fatal(err)
	}
	data, err := schema.Marshal(request)
	if err != nil {
		f.t.Fatal(err)
	}
	nc := f.connect("operator")
	defer nc.Close()
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		f.t.Fatal(err)
	}
	if m.Header.Get(schema.HeaderServiceError) != "" {
		failed = &schema.ControlError{}
		err = schema.Unmarshal(m.Data, failed)
	} else {
		err = schema.Unmarshal(m.Data, &answer)
	}
	if err != nil {
		f.t.Fatalf("%v: %s", err, m.Data)
	}
	return answer, failed
}

func (f *fabric) configure(req schema.ConfigRequest) (schema.ConfigAnswer, *schema.ControlError) {
	f.t.Helper()
	return control[schema.ConfigAnswer](f, "config", "", req)
}

func (f *fabric) apply(yaml string, force bool) (schema.ConfigAnswer, *schema.ControlError) {
	f.t.Helper()
	return f.configure(schema.ConfigRequest{Action: schema.ActionApply, Source: yaml, File: "new.yaml", Dir: f.dir, Force: force})
}

func (f *fabric) hooks(agent string, req schema.HooksRequest) (schema.HooksAnswer, *schema.ControlError) {
	f.t.Helper()
	return control[schema.HooksAnswer](f, "hooks", agent, req)
}

func (f *fabric) register(agent, hooks string) (schema.HooksAnswer, *schema.ControlError) {
	f.t.Helper()
	return f.hooks(agent, schema.HooksRequest{Action: schema.ActionRegister, Hooks: []byte(hooks)})
}

// trail is which hooks an agent's call of Bash meets.
func (f *fabric) trail(agent string) string {
	f.t.Helper()
	v, err := f.client.Ask(f.t.Context(), &schema.Event{HookType: schema.PreToolUse, AgentID: agent, ToolName: "Bash", ToolInput: []byte(bash)})
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for _, x := range v.ExecutedHooks {
		names = append(names, x.Hook)
	}
	return strings.Join(names, " ")
}

// wantTrail compares what an agent's call meets.
func (f *fabric) wantTrail(agent, want string) {
	f.t.Helper()
	if got := f.trail(agent); got != want {
		f.t.Errorf("a call of %s meets %q, not %q", agent, got, want)
	}
}

// named is a hooks.yaml with builtins of these names.
func named(names ...string) string {
	var b strings.Builder
	b.WriteString("hooks:\n  PreToolUse:\n")
	for _, n := range names {
		b.WriteString("    - {name: " + n + ", type: builtin, handler: allow}\n")
	}
	return b.String()
}

func TestConfigurationsAtRunTime(t *testing.T) {
	inBubbles(t, slices.Concat(applied, refusals, registrations))
}

var applied = []scenario{
	{"a configuration that is applied is what the next call meets", func(t *testing.T) {
		f := start(t, named("a"))
		f.wantTrail("x", "a")
		answer, failed := f.apply(named("b", "c"), false)
		if failed != nil || !answer.Changed || answer.Version != 2 {
			t.Fatalf("%+v %v", answer, failed)
		}
		f.wantTrail("x", "b c")
		answer, failed = f.apply(named("b", "c"), false)
		if failed != nil || answer.Changed || answer.Version != 2 {
			t.Errorf("the same once more: %+v %v", answer, failed)
		}
	}},
	{"a call that is under way keeps its version", func(t *testing.T) {
		f := start(t, "hooks:\n  PreToolUse: [{name: old, type: builtin, handler: waits, pool: go}, {name: old-too, type: builtin, handler: allow}]\n")
		entered, leave := make(chan struct{}), make(chan struct{})
		f.serve("w", handlers{"waits": func(context.Context, *schema.Event) (schema.Result, error) {
			close(entered)
			<-leave
			return schema.Result{}, nil
		}})
		trail := make(chan string)
		go func() { trail <- f.trail("x") }()
		<-entered
		for _, n := range []string{"b", "c"} {
			if answer, failed := f.apply(named(n), false); failed != nil || !answer.Changed {
				t.Errorf("%+v %v", answer, failed)
			}
			f.wantTrail("x", n)
		}
		close(leave)
		if got := <-trail; got != "old old-too" {
			t.Errorf("it met %q", got)
		}
	}},
	{"a rollback makes what a version said active again, as a new version", func(t *testing.T) {
		f := start(t, named("a"))
		f.apply(named("b"), false)
		f.register("", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow"}]}`)
		f.wantTrail("x", "b r")
		answer, failed := f.configure(schema.ConfigRequest{Action: schema.ActionRollback, Version: 1})
		if failed != nil || answer.Version != 4 {
			t.Errorf("%+v %v", answer, failed)
		}
		f.wantTrail("x", "a")
		f.configure(schema.ConfigRequest{Action: schema.ActionRollback, Version: 3})
		f.wantTrail("x", "b r")
		history, failed := f.configure(schema.ConfigRequest{Action: schema.ActionHistory})
		var notes []string
		for _, v := range history.History {
			notes = append(notes, v.Note)
		}
		want := []string{"rolled back to 3", "rolled back to 1", "registered r for all agents", "applied new.yaml", "started with hooks.yaml"}
		if failed != nil || !slices.Equal(notes, want) || history.History[0].Version != 5 || history.Version != 5 {
			t.Errorf("%+v %v", history, failed)
		}
	}},
	{"what is shown reads back as the same", func(t *testing.T) {
		f := start(t, named("a"))
		f.register("x", `{"PreToolUse": {"override": true, "hooks": [{"name": "r", "type": "builtin", "handler": "allow"}]}}`)
		shown, failed := f.configure(schema.ConfigRequest{Action: schema.ActionShow})
		if failed != nil || shown.Version != 2 || shown.Config == nil || shown.Config.HookCount() != 2 {
			t.Fatalf("%+v %v", shown, failed)
		}
		first, _ := f.configure(schema.ConfigRequest{Action: schema.ActionShow, Version: 1})
		if answer, failed := f.apply(first.Text, false); failed != nil || answer.Changed {
			t.Errorf("the first version's text, with what is registered, is another one: %+v %v\n%s", answer, failed, first.Text)
		}
		_, failed = f.configure(schema.ConfigRequest{Action: schema.ActionShow, Version: 99})
		if failed == nil || failed.Code != schema.CodeNotFound || failed.Message != "config version 99 is not stored; name one that config history lists" {
			t.Errorf("%v", failed)
		}
	}},
}

var refusals = []scenario{
	{"a faulty file changes nothing, and the answer has all its faults", func(t *testing.T) {
		f := start(t, named("a"))
		_, failed := f.apply("hooks:\n  PreToolUse: [{handler: ./a.sh, timeot: 3}]\n  PreTolUse: []\n", true)
		if failed == nil || failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, "new.yaml:2:") || !strings.Contains(failed.Message, "new.yaml:3:") {
			t.Errorf("%v", failed)
		}
		f.wantTrail("x", "a")
	}},
	{"a configuration that cannot be kept is the asker's to mend, however often it is asked for", func(t *testing.T) {
		f := start(t, named("a"))
		yaml := "hooks:\n  PreToolUse:\n" + strings.Repeat("    - {handler: allow, type: builtin, matcher: "+strings.Repeat("x", 350)+"}\n", 20_000)
		_, failed := f.apply(yaml, true)
		if failed == nil || failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, "at most 8128 KiB are possible") {
			t.Errorf("%v", failed)
		}
	}},
	{"a handler that a node cannot load stops an apply, and no force is needed to go on without it", func(t *testing.T) {
		f := start(t, named("a"))
		f.serve("gopher", handlers{"there": does(schema.Result{})})
		const yaml = "hooks:\n  PreToolUse:\n    - {name: b, type: builtin, handler: there, pool: go}\n    - {name: c, type: builtin, handler: missing, pool: go}\n    - {name: d, type: builtin, handler: unknown}\n"
		answer, failed := f.apply(yaml, false)
		if failed != nil || !answer.Refused || answer.Changed || answer.Version != 1 || len(answer.Problems) != 2 {
			t.Fatalf("%+v %v", answer, failed)
		}
		at := func(hook string) schema.Problem {
			i := slices.IndexFunc(answer.Problems, func(p schema.Problem) bool { return p.Hook == hook })
			if i < 0 {
				t.Fatalf("nothing about %s: %+v", hook, answer.Problems)
			}
			return answer.Problems[i]
		}
		if p := at("c"); p.Node != "gopher" || p.Error != `this program serves no handler "missing"` {
			t.Errorf("%+v", p)
		}
		if p := at("d"); !strings.Contains(p.Error, `there is no builtin "unknown"`) {
			t.Errorf("%+v", p)
		}
		f.wantTrail("x", "a")
		answer, failed = f.apply(yaml, true)
		if failed != nil || !answer.Changed || answer.Refused || len(answer.Problems) != 2 {
			t.Fatalf("with force: %+v %v", answer, failed)
		}
		v, err := f.client.Ask(t.Context(), &schema.Event{HookType: schema.PreToolUse, AgentID: "x", ToolName: "Bash", ToolInput: []byte(bash)})
		if err != nil || v.Decision != schema.Deny {
			t.Errorf("%+v %v", v, err)
		}
	}},
	{"a malformed request gets an error", func(t *testing.T) {
		f := start(t, named("a"))
		for is, c := range map[string]struct {
			verb, agent, want string
			request           any
		}{
			"an unknown action of config": {"config", "", `config has no action "aply"; use apply, show, history or rollback`, schema.ConfigRequest{Action: "aply"}},
			"config for one agent":        {"config", "x", "the configuration is not of one agent; send the request to hook.v1.ctl.config._", schema.ConfigRequest{Action: schema.ActionShow}},
			"a rollback to nothing":       {"config", "", "version is missing; name one that config history lists", schema.ConfigRequest{Action: schema.ActionRollback}},
			"no object":                   {"config", "", "cannot read the request", 7},
			"an unknown action of hooks":  {"hooks", "", `hooks has no action ""; use register, unregister or list`, nil},
			"no hooks":                    {"hooks", "", "hooks is missing", schema.HooksRequest{Action: schema.ActionRegister}},
			"nothing to unregister":       {"hooks", "", "names and overrides are missing", schema.HooksRequest{Action: schema.ActionUnregister}},
		} {
			_, failed := control[schema.HooksAnswer](f, c.verb, c.agent, c.request)
			if failed == nil || failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, c.want) {
				t.Errorf("%s: %v", is, failed)
			}
		}
		f.wantTrail("x", "a")
	}},
}

var registrations = []scenario{
	{"a hook that is registered for all is asked behind those of the file", func(t *testing.T) {
		f := start(t, named("a")+"agents:\n  - {id: x, hooks: {PreToolUse: [{name: own, type: builtin, handler: allow}]}}\n")
		answer, failed := f.register("", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow"}]}`)
		if failed != nil || !answer.Changed || !slices.Equal(answer.Names, []string{"r"}) {
			t.Fatalf("%+v %v", answer, failed)
		}
		f.wantTrail("x", "a r own")
		f.wantTrail("y", "a r")
	}},
	{"a hook that is registered for an agent, or a glob of agents, is asked for those only", func(t *testing.T) {
		f := start(t, named("a"))
		f.register("team-*", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow"}]}`)
		f.wantTrail("team-1", "a r")
		f.wantTrail("x", "a")
	}},
	{"an override that is registered drops the global hooks of that event, until it is taken back", func(t *testing.T) {
		f := start(t, named("a"))
		f.register("x", `{"PreToolUse": {"override": true, "hooks": [{"name": "r", "type": "builtin", "handler": "allow"}]}}`)
		f.wantTrail("x", "r")
		f.wantTrail("y", "a")
		if _, failed := f.hooks("x", schema.HooksRequest{Action: schema.ActionUnregister, Overrides: []schema.EventType{schema.PreToolUse}}); failed != nil {
			t.Error(failed)
		}
		f.wantTrail("x", "a r")
	}},
	{"to register again as before changes nothing; otherwise it replaces", func(t *testing.T) {
		f := start(t, named("a"))
		const r = `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow"}, {"name": "s", "type": "builtin", "handler": "allow"}]}`
		f.register("", r)
		if answer, failed := f.register("", r); failed != nil || answer.Changed || answer.Version != 2 {
			t.Errorf("%+v %v", answer, failed)
		}
		if answer, failed := f.register("", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow", "matcher": "Write"}]}`); failed != nil || !answer.Changed {
			t.Errorf("%+v %v", answer, failed)
		}
		f.wantTrail("x", "a s")
	}},
	{"a hook of the file, or of another agent, cannot be replaced or unregistered", func(t *testing.T) {
		f := start(t, named("a"))
		f.register("x", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow"}]}`)
		for _, name := range []string{"a", "r"} {
			_, failed := f.register("", `{"PreToolUse": [{"name": "`+name+`", "type": "builtin", "handler": "deny"}]}`)
			if failed == nil || failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, name) {
				t.Errorf("%v", failed)
			}
			if _, failed = f.hooks("", schema.HooksRequest{Action: schema.ActionUnregister, Names: []string{name}}); failed == nil {
				t.Errorf("%s was unregistered", name)
			}
		}
		f.wantTrail("x", "a r")
	}},
	{"the rules for registered hooks are those of the file", func(t *testing.T) {
		f := start(t, named("a"))
		for _, hooks := range []string{
			`{"PreToolUse": [{"handler": "./a.sh", "timeot": 3}]}`, `{"PreTolUse": []}`, `7`, `{"PreToolUse": [{"handler": "./a.sh", "registered": true}]}`,
			`{"PreToolUse": [{"handler": "./a.sh", "when": "tool_inptu.x == 1"}]}`,
		} {
			if _, failed := f.register("", hooks); failed == nil || failed.Code != schema.CodeBadRequest {
				t.Errorf("%s: %v", hooks, failed)
			}
		}
		answer, failed := f.register("", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "missing"}]}`)
		if failed != nil || !answer.Refused || len(answer.Problems) != 1 || answer.Names != nil {
			t.Errorf("%+v %v", answer, failed)
		}
		f.wantTrail("x", "a")
	}},
	{"what is registered stays when a file is applied, and is listed until it is unregistered", func(t *testing.T) {
		f := start(t, named("a"))
		f.register("", `{"PreToolUse": [{"name": "r", "type": "builtin", "handler": "allow"}]}`)
		f.apply(named("b"), false)
		f.wantTrail("x", "b r")
		_, failed := f.apply(named("r"), false)
		if failed == nil || !strings.Contains(failed.Message, "taken") {
			t.Errorf("a file with the name of a registered hook: %v", failed)
		}
		listed, failed := f.hooks("", schema.HooksRequest{Action: schema.ActionList})
		if failed != nil || len(listed.Hooks) != 1 || listed.Hooks[0].Name != "r" || !listed.Hooks[0].Registered {
			t.Errorf("%+v %v", listed, failed)
		}
		if answer, failed := f.hooks("", schema.HooksRequest{Action: schema.ActionUnregister, Names: []string{"r"}}); failed != nil || !answer.Changed {
			t.Errorf("%+v %v", answer, failed)
		}
		f.wantTrail("x", "b")
	}},
	{"registrations that come at once are all kept", func(t *testing.T) {
		f := start(t, named("a"))
		const n = 8
		done := make(chan *schema.ControlError, n)
		for i := range n {
			go func() {
				_, failed := f.register("", `{"PreToolUse": [{"name": "r`+string(rune('0'+i))+`", "type": "builtin", "handler": "allow"}]}`)
				done <- failed
			}()
		}
		for range n {
			if failed := <-done; failed != nil {
				t.Error(failed)
			}
		}
		synctest.Wait()
		if got := strings.Fields(f.trail("x")); len(got) != n+1 {
			t.Errorf("%q", got)
		}
	}},
}

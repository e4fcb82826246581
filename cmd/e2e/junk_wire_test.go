package e2e_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// crewHook is the index of the crew's hook in the configuration.
const crewHook = "4"

// soundBatch is a batch that the crew's worker runs.
func soundBatch() *nats.Msg {
	return &nats.Msg{
		Subject: "hook.v1.run.crew.w1",
		Header: nats.Header{
			schema.HeaderBatch: {"b1"}, schema.HeaderConfig: {"1"}, schema.HeaderHooks: {crewHook},
			schema.HeaderAgent: {"junk"}, schema.HeaderEvent: {"PreToolUse"}, schema.HeaderID: {uuid.NewString()},
			schema.HeaderTool: {"Crew"}, schema.HeaderLeft: {"5s"},
		},
		Data: []byte(`{"tool_name":"Crew"}`),
	}
}

func junkBatch(name string, status schema.Status, want string, spoil func(*nats.Msg)) junk {
	return junk{name, want, func(t testing.TB, f *junkFabric) string {
		m := soundBatch()
		spoil(m)
		answer, err := f.request(t, m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var r schema.BatchReply
		if err := schema.Unmarshal(answer.Data, &r); err != nil {
			t.Fatalf("%s: the reply %q: %v", name, answer.Data, err)
		}
		if r.Status != status || r.Worker != "w1" || len(r.Outcomes) > 0 {
			t.Errorf("%s: %+v, want the status %q", name, r, status)
		}
		return r.Error
	}}
}

func junkBatches() []junk {
	bad, stale := schema.StatusMalformed, schema.StatusStale
	return []junk{
		junkBatch("no headers", bad, "is missing", func(m *nats.Msg) { m.Header = nil }),
		junkBatch("no batch id", bad, "Hook-Batch is missing", unset(schema.HeaderBatch)),
		junkBatch("two batch ids", bad, " 2 times", set(schema.HeaderBatch, "a", "b")),
		junkBatch("no config", bad, "Hook-Config is missing", unset(schema.HeaderConfig)),
		junkBatch("a word for the config", bad, "send the config version", set(schema.HeaderConfig, "latest")),
		junkBatch("a negative config", bad, "send the config version", set(schema.HeaderConfig, "-1")),
		junkBatch("no hooks", bad, "Hook-Hooks is missing", unset(schema.HeaderHooks)),
		junkBatch("a name for a hook", bad, "list the indexes of hooks", set(schema.HeaderHooks, "crew")),
		junkBatch("a program for a hook", bad, "list the indexes of hooks", set(schema.HeaderHooks, "/bin/sh")),
		junkBatch("a negative hook", bad, "list the indexes of hooks", set(schema.HeaderHooks, "-4")),
		junkBatch("a hook with a nought before it", bad, "list the indexes of hooks", set(schema.HeaderHooks, "04")),
		junkBatch("a gap in the hooks", bad, "list the indexes of hooks", set(schema.HeaderHooks, "1,,4")),
		junkBatch("a hook twice", bad, "list each hook once", set(schema.HeaderHooks, "4,4")),
		junkBatch("hooks in disorder", bad, "in registration order", set(schema.HeaderHooks, "4,1")),
		junkBatch("too many hooks", bad, "at most", set(schema.HeaderHooks, strings.Repeat("1,", 10_001)+"1")),
		junkBatch("no agent", bad, "Hook-Agent is missing", unset(schema.HeaderAgent)),
		junkBatch("no event", bad, "Hook-Event is missing", unset(schema.HeaderEvent)),
		junkBatch("an unknown event", bad, "unknown event", set(schema.HeaderEvent, "BeforeLunch")),
		junkBatch("no event id", bad, "Hook-Id is missing", unset(schema.HeaderID)),
		junkBatch("no time left said", bad, "Hook-Left is missing", unset(schema.HeaderLeft)),
		junkBatch("no time left", bad, "send a duration above zero", set(schema.HeaderLeft, "0s")),
		junkBatch("a faulty escape", bad, "write a percent sign as %25", set(schema.HeaderAgent, "%")),
		junkBatch("an unknown config", stale, "config version 99 is not known here", set(schema.HeaderConfig, "99")),
		junkBatch("the largest config", stale, "is not known here", set(schema.HeaderConfig, fmt.Sprint(uint64(math.MaxUint64)))),
		junkBatch("a hook of another pool", stale, "has no hook 0 for a pool of this worker", set(schema.HeaderHooks, "0")),
		junkBatch("a hook that is not there", stale, "has no hook 999999", set(schema.HeaderHooks, "999999")),
		junkBatch("a body that is no object", bad, "it must be a JSON object", body("[]")),
		junkBatch("half a body", bad, "the event", body(`{"tool_name"`)),
		junkBatch("no body", bad, "the event", body("")),
		junkBatch("another tool in the body", schema.StatusMismatch, "names the tool", body(`{"tool_name":"Bash"}`)),
	}
}

// junkBeats are beats that say nothing, or lie. What cannot be read is in the
// log; what can be is believed until the next beat does not come, and no call
// suffers from it.
func junkBeats() []junk {
	var all []junk
	beat := func(name, want, body string, suffer bool) {
		worker := fmt.Sprintf("liar%d", len(all))
		all = append(all, junk{name, want, func(t testing.TB, f *junkFabric) string {
			mark := f.broker.said.mark()
			if err := f.nc.Publish("hook.v1.beat.crew."+worker, []byte(body)); err != nil {
				t.Fatal(err)
			}
			if suffer {
				v, err := ask(t.Context(), f.client, "Crew")
				return fmt.Sprintf("%v, %v", v.Decision, err)
			}
			m, err := f.broker.await(mark, `(?m)^.*cannot read a heartbeat.*worker=`+worker+` .*$`)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return m[0]
		}})
	}
	beat("no beat at all", "error=", "", false)
	beat("a beat of null", "allow, <nil>", "null", true)
	beat("a beat of prose", "error=", "alive", false)
	beat("a list for a beat", "error=", "[]", false)
	beat("half a beat", "error=", `{"capacity":1`, false)
	beat("text for a capacity", "error=", `{"capacity":"many"}`, false)
	beat("a fraction for a capacity", "error=", `{"capacity":1.5}`, false)
	beat("a capacity that overflows", "error=", `{"capacity":99999999999999999999}`, false)
	beat("negative versions", "error=", `{"versions":[-1]}`, false)
	beat("malformed batches", "error=", `{"batches":[1]}`, false)
	beat("a member twice", "error=", `{"capacity":1,"capacity":2}`, false)
	beat("binary", "error=", "\x00\xff", false)
	beat("a worker that is not there", "allow, <nil>", `{"capacity":1000000,"versions":[1]}`, true)
	beat("a capacity of everything", "allow, <nil>", fmt.Sprintf(`{"capacity":%d,"in_flight":%d,"versions":[1]}`, math.MaxInt, math.MinInt), true)
	beat("a negative capacity", "allow, <nil>", `{"capacity":-5,"in_flight":-9}`, true)
	beat("no capacity", "allow, <nil>", `{"versions":[1]}`, true)
	beat("another worker's name", "allow, <nil>", `{"pool":"crew","worker":"w1","draining":true,"capacity":1}`, true)
	beat("outcomes of batches that are not", "allow, <nil>", `{"capacity":1,"batches":[{"batch":"x","outcomes":[{"hook":-1},{"hook":99}]}]}`, true)
	return all
}

func junkControl() []junk {
	var all []junk
	ctl := func(subject, code, want, body string) {
		all = append(all, junk{subject + " " + body, want, func(t testing.TB, f *junkFabric) string {
			answer, err := f.request(t, &nats.Msg{Subject: subject, Data: []byte(body)})
			if err != nil {
				return err.Error()
			}
			var ce schema.ControlError
			if err := schema.Unmarshal(answer.Data, &ce); err != nil {
				t.Errorf("%s: the error %q: %v", subject, answer.Data, err)
			}
			if got := answer.Header.Get(schema.HeaderServiceErrorCode); got != code || ce.Code != code {
				t.Errorf("%s: the codes are %q and %q, want %q", subject, got, ce.Code, code)
			}
			return ce.Message
		}})
	}
	const none = "no responders"
	for _, verb := range []string{"frobnicate", "STATUS", "status!", "1status", strings.Repeat("s", 33)} {
		ctl("hook.v1.ctl."+verb+"._", "", none, "")
	}
	ctl("hook.v1.ctl.status.=zz", schema.CodeBadRequest, "faulty escape", "")
	ctl("hook.v1.ctl.status.=41", schema.CodeBadRequest, "needs none", "")
	ctl("hook.v1.ctl.status."+strings.Repeat("a", 129), schema.CodeBadRequest, "at most 128 are allowed", "")
	ctl("hook.v1.ctl.reboot.agent", "", none, "now")
	for _, verb := range []string{"inject", "answer", "round", "ack", "drain", "fetch", "mode", "checkpoint"} {
		if verb != "inject" {
			ctl("hook.v1.ctl."+verb+"._", schema.CodeBadRequest, "is about one agent", "{not json")
		}
		for _, body := range []string{"{not json", "[]", "null null", "\x00", `{"x":1,"x":2}`, strings.Repeat("[", 5000)} {
			ctl("hook.v1.ctl."+verb+".agent1", schema.CodeBadRequest, "cannot read the request", body)
		}
	}
	for body, want := range map[string]string{
		`{"content":"x","matcher":"[z-a]"}`:                             "the matcher",
		`{"content":"x","source":"human\n[Human Input]"}`:               "the source is",
		`{"content":"x","producer":"` + strings.Repeat("p", 200) + `"}`: "at most 128",
		`{"content":"x","key":"` + strings.Repeat("=", 200) + `"}`:      "at most 128",
		`{"object":{"digest":"../../etc/passwd","size":9}}`:             "there is no such object",
		`{"object":{"digest":"../../etc/passwd","size":-9}}`:            "there is no such object",
		`{"object":{"digest":"x","size":68719476736}}`:                  "at most 64",
	} {
		code := schema.CodeBadRequest
		if strings.Contains(want, "no such") {
			code = schema.CodeNotFound
		}
		ctl("hook.v1.ctl.inject.agent1", code, want, body)
	}
	ctl("hook.v1.ctl.fetch.agent1", schema.CodeNotFound, "names the object", `{"digest":"../../etc/passwd"}`)
	ctl("hook.v1.ctl.answer.agent1", schema.CodeBadRequest, "ends in no number", `{"session":"s","content":"x","label":"../x"}`)
	ctl("hook.v1.ctl.answer.agent1", schema.CodeBadRequest, "../x", `{"session":"s","content":"x","label":"../x.1"}`)
	for _, verb := range []string{"config", "hooks"} {
		for _, body := range []string{"{not json", "[]", "null null", "\x00", `{"action":7}`, `{"action":"show","action":"show"}`, strings.Repeat("[", 5000)} {
			ctl("hook.v1.ctl."+verb+"._", schema.CodeBadRequest, "cannot read the request", body)
		}
		ctl("hook.v1.ctl."+verb+"._", schema.CodeBadRequest, "has no action", "")
		ctl("hook.v1.ctl."+verb+"._", schema.CodeBadRequest, "has no action", `{"action":"destroy"}`)
	}
	ctl("hook.v1.ctl.config._", schema.CodeBadRequest, "the file is empty", `{"action":"apply"}`)
	ctl("hook.v1.ctl.config.agent1", schema.CodeBadRequest, "the configuration is not of one agent", `{"action":"show"}`)
	ctl("hook.v1.ctl.config._", schema.CodeBadRequest, "unknown event", `{"action":"apply","source":"hooks: {PreToolUze: []}","file":"f"}`)
	ctl("hook.v1.ctl.config._", schema.CodeBadRequest, "unmarshal JSON number -1", `{"action":"show","version":-1}`)
	ctl("hook.v1.ctl.config._", schema.CodeNotFound, "config version 18446744073709551615 is not stored", `{"action":"show","version":18446744073709551615}`)
	ctl("hook.v1.ctl.config._", schema.CodeNotFound, "config version 99 is not stored", `{"action":"rollback","version":99,"force":true}`)
	ctl("hook.v1.ctl.hooks._", schema.CodeBadRequest, "unknown event", `{"action":"register","hooks":{"PreToolUze":[]},"force":true}`)
	ctl("hook.v1.ctl.hooks._", schema.CodeBadRequest, "hooks is", `{"action":"register","hooks":"all"}`)
	ctl("hook.v1.ctl.hooks._", schema.CodeNotFound, `no hook "x" is registered for all agents`, `{"action":"unregister","names":["x"]}`)
	ctl("hook.v1.ctl.status", "", "no responders", "")
	ctl("hook.v1.ctl.status.a.b", "", "no responders", "")
	return all
}

package aggregator_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

func set(key string, values ...string) func(*nats.Msg) {
	return func(m *nats.Msg) { m.Header[key] = values }
}

func body(s string) func(*nats.Msg) { return func(m *nats.Msg) { m.Data = []byte(s) } }

// malformed are events that cannot be judged as they are, with words of the answer to each.
var malformed = map[string]struct {
	spoil func(*nats.Msg)
	says  string
}{
	"no id":                           {set(schema.HeaderID), "Hook-Id is missing"},
	"an id that is not a UUID":        {set(schema.HeaderID, "42"), "not a UUID"},
	"two ids":                         {set(schema.HeaderID, eventID, eventID), "send it once"},
	"no time left":                    {set(schema.HeaderLeft), "Hook-Left is missing"},
	"time that is over":               {set(schema.HeaderLeft, "0s"), "send a duration above zero"},
	"time that is not a duration":     {set(schema.HeaderLeft, "soon"), "not a duration"},
	"time for days":                   {set(schema.HeaderLeft, "25h"), "at most 24h"},
	"attempt zero":                    {set(schema.HeaderAttempt, "0"), "from 1 to 100"},
	"an attempt that is not a number": {set(schema.HeaderAttempt, "twice"), "from 1 to 100"},
	"a broken escape":                 {set(schema.HeaderSession, "%zz"), "Hook-Session"},
	"a tool that is too long":         {set(schema.HeaderTool, strings.Repeat("x", 5000)), "Hook-Tool"},
	"acks of no events":               {set(schema.HeaderAck, "1,2"), "Hook-Ack"},
	"a body that is too large":        {body(`{"tool_name":"Bash","prompt":"` + strings.Repeat("x", schema.MaxEvent) + `"}`), "bytes"},
	"a body that is no JSON":          {body(`tool_name: Bash`), "JSON"},
	"a body that is a list":           {body(`[{"tool_name":"Bash"}]`), "JSON object"},
	"no body":                         {body(""), "JSON"},
	"half a body":                     {body(`{"tool_name":"Bash","tool_input":{`), ""},
	"an input that is a string":       {body(`{"tool_name":"Bash","tool_input":"ls"}`), "tool_input"},
	"a name that is a number":         {body(`{"tool_name":7}`), "tool_name"},
	"two inputs":                      {body(`{"tool_name":"Bash","tool_input":{},"tool_input":{"a":1}}`), "tool_input"},
}

func TestMalformedEventsFollowTheirGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes := says(schema.Allowed())
		for _, guarded := range []bool{false, true} {
			guard := func(h *schema.Hook) { h.FailClosed = guarded }
			f := start(t, library{"yes": yes}, hook("yes", guard), hook("yes", at(schema.PostToolUse), guard))
			for name, c := range malformed {
				m := event(schema.PreToolUse)
				c.spoil(m)
				v := f.ask(m)
				if (v.Decision == schema.Deny) != guarded || v.Decision == schema.Allow {
					t.Errorf("%s, guarded %v: %+v", name, guarded, v)
				}
				if all := strings.Join(v.HookErrors, "; "); !strings.Contains(all, c.says) || !strings.HasPrefix(all, "malformed event: ") {
					t.Errorf("%s: it says %q, not %q", name, all, c.says)
				}
				m = event(schema.PostToolUse)
				c.spoil(m)
				if v := f.ask(m); v.Decision != schema.Continue || len(v.HookErrors) == 0 {
					t.Errorf("%s, after the tool: %+v", name, v)
				}
			}
			want(t, f.ask(event(schema.PreToolUse)), schema.Allow, "yes:ok")
		}
	})
}

// forged are bodies that name another tool than the header, which says Bash.
var forged = map[string]func(*nats.Msg){
	"another name":                    body(`{"tool_name":"Read"}`),
	"another name, with blanks":       body("{ \"tool_name\" :\n\t\"Read\" }"),
	"another name behind a harmless":  body(`{"tool_input":{"tool_name":"Bash"},"tool_name":"Read"}`),
	"another name before a harmless":  body(`{"tool_name":"Read","tool_input":{"tool_name":"Bash"}}`),
	"a key in escapes":                body(`{"tool_input":{"tool_name":"Bash"},"tool\u005fname":"Read"}`),
	"a key in escapes, upper case":    body(`{"\u0074ool_name":"Read"}`),
	"a value that begins the same":    body(`{"tool_name":"Bash2"}`),
	"a value that ends in an escape":  body(`{"tool_name":"Bash\""}`),
	"the same name in another case":   body(`{"tool_name":"bash"}`),
	"a header that is not there":      func(m *nats.Msg) { delete(m.Header, schema.HeaderTool) },
	"a header that names another one": set(schema.HeaderTool, "Read"),
	"a header that ends the string": func(m *nats.Msg) {
		m.Header.Set(schema.HeaderTool, `Bash","x":"y`)
		m.Data = []byte(`{"tool_name":"Bash","x":"y"}`)
	},
}

func TestAForgedToolNameIsDeniedWhateverTheHooksSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := library{"yes": says(schema.Allowed())}
		for name, hooks := range map[string][]schema.Hook{
			"no hook at all":                  nil,
			"no hook matches the header":      {hook("yes", matching("Edit"))},
			"a hook that allows":              {hook("yes")},
			"a hook that matches the forgery": {hook("yes", matching("Read"))},
			"a hook of another pool":          {hook("yes", remote)},
		} {
			f := start(t, lib, hooks...)
			for how, forge := range forged {
				m := event(schema.PreToolUse)
				forge(m)
				if v := f.ask(m); v.Decision != schema.Deny || !strings.HasPrefix(v.Reason, "malformed event: ") {
					t.Errorf("%s, %s: %+v", name, how, v)
				}
				m = event(schema.PostToolUse)
				forge(m)
				if v := f.ask(m); v.Decision != schema.Continue || len(v.HookErrors) != 1 {
					t.Errorf("%s, %s, after the tool: %+v", name, how, v)
				}
			}
			if n := f.value("malformed_total"); n != float64(2*len(forged)) {
				t.Errorf("%s: %v counted of %d", name, n, 2*len(forged))
			}
		}
	})
}

func TestWhatLooksLikeAForgeryAndIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"yes": says(schema.Allowed())}, hook("yes"))
		for name, s := range map[string]string{
			"no name in the body":       `{"tool_input":{}}`,
			"an empty name":             `{"tool_name":""}`,
			"null":                      `{"tool_name":null}`,
			"a name in the input":       `{"tool_name":"Bash","tool_input":{"tool_name":"Read"}}`,
			"a name in a string":        `{"tool_name":"Bash","tool_input":{"a":"\"tool_name\":\"Read\""}}`,
			"the name in escapes":       `{"tool_name":"\u0042ash"}`,
			"the key in escapes":        `{"\u0074ool_name":"Bash"}`,
			"escapes of another letter": `{"tool_name":"Bash","tool_input":{"a":"\u001b[0m"}}`,
		} {
			m := event(schema.PreToolUse)
			m.Data = []byte(s)
			if v := f.ask(m); v.Decision != schema.Allow {
				t.Errorf("%s: %+v", name, v)
			}
		}
	})
}

func TestASubjectThatNamesNoEventIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		for _, subject := range []string{"hook.v1.event.a.PreCoffee", "hook.v1.event.=2f.PreToolUse", "hook.v1.event.a=.PreToolUse", "hook.v1.event.a.pretooluse"} {
			m := event(schema.PreToolUse)
			m.Subject = subject
			if v := f.ask(m); v.Decision != schema.Deny || v.Reason == "" || v.Fabric != "fabric-1" {
				t.Errorf("%s: %+v", subject, v)
			}
		}
	})
}

func TestAMalformedPromptOrModelCallFollowsItsGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"yes": says(schema.Result{})},
			hook("yes", at(schema.UserPromptSubmit), failClosed), hook("yes", at(schema.BeforeLLMCall), failClosed), hook("yes", at(schema.QueryEnd), failClosed))
		for e, d := range map[schema.EventType]schema.Decision{
			schema.UserPromptSubmit: schema.Deny, schema.BeforeLLMCall: schema.Fail, schema.QueryEnd: schema.Continue, schema.SessionStart: schema.Continue,
		} {
			m := event(e)
			m.Header.Set(schema.HeaderAttempt, "x")
			if v := f.ask(m); v.Decision != d || len(v.HookErrors) != 1 {
				t.Errorf("%s: %+v", e, v)
			}
		}
	})
}

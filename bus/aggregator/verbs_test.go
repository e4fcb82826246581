package aggregator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// request makes a control request; the answer is an error's code and sentence, or
// the body.
func (f *fabric) request(subject, body string) (answer string, failed *schema.ControlError) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	m, err := f.shim.RequestMsgWithContext(ctx, &nats.Msg{Subject: "hook.v1.ctl." + subject, Data: []byte(body)})
	if err != nil {
		f.t.Fatalf("%s: %v", subject, err)
	}
	if m.Header.Get(schema.HeaderServiceErrorCode) == "" {
		return string(m.Data), nil
	}
	failed = &schema.ControlError{}
	if err := schema.Unmarshal(m.Data, failed); err != nil {
		f.t.Error(err)
	}
	return "", failed
}

func TestVerbsRefuseWhatMakesNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		for request, want := range map[string][2]string{
			`inject._ {"content":"x"}`:                          {schema.CodeBadRequest, "no receiver is named"},
			`inject.a {"content":"x","all":true}`:               {schema.CodeBadRequest, "several receivers"},
			`inject._ {"content":"x","session":"s","all":true}`: {schema.CodeBadRequest, "several receivers"},
			`inject.a {}`: {schema.CodeBadRequest, "the item is empty"},
			`inject.a {"content":"x","background":{"id":"1","tool":"t","status":"s"}}`: {schema.CodeBadRequest, "several contents"},
			`inject.a {"subagent":{"id":"1"}}`:                                         {schema.CodeBadRequest, "its status"},
			`inject.a {"background":{"id":"1"}}`:                                       {schema.CodeBadRequest, "the tool"},
			`inject.a {"content":"x","strategy":"shout"}`:                              {schema.CodeBadRequest, "no strategy"},
			`inject.a {"content":"x","ttl":"-1s"}`:                                     {schema.CodeBadRequest, "ttl"},
			`inject.a {"content":"x","ttl":"soon"}`:                                    {schema.CodeBadRequest, "cannot read the request"},
			`inject.a {"content":"x","number":3}`:                                      {schema.CodeBadRequest, "number 3 needs producer"},
			`inject.a {"content":"x","producer":"p","number":3,"key":"k"}`:             {schema.CodeBadRequest, "a number and a key"},
			`inject.a {"content":"x","producer":"round","number":9}`:                   {schema.CodeBadRequest, "reserved for the fabric"},
			`inject.a {"content":"x","source":"` + strings.Repeat("s", 65) + `"}`:      {schema.CodeBadRequest, "65 characters"},
			`inject.a {"object":{"digest":"none","size":1}}`:                           {schema.CodeNotFound, "no such object"},
			`inject.a {"object":{"digest":"none","size":67108865}}`:                    {schema.CodeBadRequest, "at most 64"},
			`inject.a [`:                            {schema.CodeBadRequest, "cannot read the request"},
			`pending._ {"limit":-1}`:                {schema.CodeBadRequest, "limit is -1"},
			`withdraw._ {}`:                         {schema.CodeBadRequest, "key is missing"},
			`follow.a {}`:                           {schema.CodeBadRequest, "hook.v1.ctl.follow._"},
			`follow._ {}`:                           {schema.CodeUnavailable, "does not store the configuration"},
			`withdraw._ {"key":"a-a.x.1"}`:          {schema.CodeNotFound, "no such message"},
			`withdraw._ {"key":"nope"}`:             {schema.CodeBadRequest, "no message can have this key"},
			`withdraw.a {"key":"a-b.x.1"}`:          {schema.CodeBadRequest, "not for the agent"},
			`ack._ {"events":[]}`:                   {schema.CodeBadRequest, "about one agent"},
			`ack.a {"events":["x"]}`:                {schema.CodeBadRequest, "not a UUID"},
			`drain.a {}`:                            {schema.CodeBadRequest, "not a UUID"},
			`fetch.a {"digest":"none"}`:             {schema.CodeNotFound, "names the object"},
			`fetch.a {"digest":"none","offset":-1}`: {schema.CodeBadRequest, "offset is -1"},
			`answer.a {"content":"x"}`:              {schema.CodeBadRequest, "session is missing"},
			`answer.a {"session":"s"}`:              {schema.CodeBadRequest, "is empty"},
			`answer.a {"session":"s","object":{"digest":"none","size":67108865}}`:       {schema.CodeBadRequest, "at most 64"},
			`answer.a {"session":"s","content":"x","label":"taken.1"}`:                  {schema.CodeConflict, "another agent"},
			`answer.a {"session":"s","content":"x","snapshot":{"digest":"d","size":1}}`: {schema.CodeNotFound, "no such object"},
			`round.a {}`:                               {schema.CodeNotFound, "no round"},
			`round.a {"action":"dance"}`:               {schema.CodeBadRequest, "no action"},
			`round.a {"action":"start","grace":"-1s"}`: {schema.CodeBadRequest, "negative"},
		} {
			subject, body, _ := strings.Cut(request, " ")
			_, failed := f.request(subject, body)
			if failed == nil || failed.Code != want[0] || !strings.Contains(failed.Message, want[1]) {
				t.Errorf("%s: %+v", request, failed)
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.items) > 0 || m.peers.Answers > 0 {
			t.Errorf("something was changed: %q", m.calls)
		}
	})
}

func TestVerbsSayThatTheMemoryCanNotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.gone = true
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		for _, request := range []string{
			`inject.a {"content":"x"}`, `withdraw._ {"key":"k"}`, `ack.a {"events":["` + id(1) + `"]}`, `drain.a {"event_id":"` + id(1) + `"}`,
			`answer.a {"session":"s","content":"x"}`, `mode.a {"vote_only":true}`, `checkpoint.a {}`,
		} {
			subject, body, _ := strings.Cut(request, " ")
			if _, failed := f.request(subject, body); failed == nil || failed.Code != schema.CodeUnavailable {
				t.Errorf("%s: %+v", request, failed)
			}
		}
	})
}

func TestAnAgentsOwnAnswersTakeItsAllowanceAndRelayedOnesDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		f.request("answer.a", `{"session":"s","content":"own"}`)
		f.request("relay.a", `{"session":"s","content":"relayed"}`)
		m.mu.Lock()
		if len(m.items) != 2 || m.items[0].Author != "a" || m.items[1].Author != "" || m.items[1].Except != "a" {
			t.Errorf("%+v", m.items)
		}
		m.spent = true
		m.mu.Unlock()
		if _, failed := f.request("answer.a", `{"session":"s","content":"own"}`); failed == nil || failed.Code != schema.CodeUnavailable || !strings.Contains(failed.Message, "allowance") {
			t.Errorf("%+v", failed)
		}
		if got := m.recorded("store"); len(got) > 0 {
			t.Errorf("something was stored: %q", got)
		}
		if _, failed := f.request("relay.a", `{"session":"s","content":"relayed"}`); failed != nil {
			t.Errorf("%+v", failed)
		}
		if n := f.value("limited_total", "limit=answers"); n != 1 {
			t.Errorf("%v were counted", n)
		}
		if l := f.agg.Status().Limited; len(l) != 1 || l[0].Name != "a" || l[0].Limit != "answers" {
			t.Errorf("status: %+v", l)
		}
	})
}

// Without credentials everybody may do everything, but no agent takes an operator's name.
func TestAnAgentAnswersOnlyInItsSessionsAndUnderItsOwnName(t *testing.T) {
	for name, credentials := range map[string]bool{"with credentials": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				f := startWith(t, aggregator.Options{Memory: m.all(), Credentials: credentials}, library{})
				for request, refused := range map[string]struct {
					says   string
					always bool
				}{
					`answer.a {"session":"foreign","content":"x"}`:                     {`"a" does not take part in the session "foreign"`, false},
					`answer.a {"session":"s","content":"x","label":"alice.1"}`:         {"another agent's id", false},
					`answer.a {"session":"s","content":"x","label":"operator.1"}`:      {"agents may not use: operator", true},
					`answer.a {"session":"s","content":"x","label":"Oper_ator-2.7"}`:   {"agents may not use", true},
					`answer.a {"session":"s","content":"x","label":"SYSTEM.1"}`:        {"agents may not use", true},
					`answer.a {"session":"s","content":"x","label":"agent2.1"}`:        {"", false},
					`answer.a {"session":"s","content":"x","label":"a.2"}`:             {"", false},
					`answer.a {"session":"s","content":"x"}`:                           {"", false},
					`relay.a {"session":"foreign","content":"x"}`:                      {"", false},
					`relay.a {"session":"foreign","content":"x","label":"operator.1"}`: {"", false},
				} {
					subject, body, _ := strings.Cut(request, " ")
					_, failed := f.request(subject, body)
					if want := refused.says != "" && (credentials || refused.always); want != (failed != nil) || want && (failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, refused.says)) {
						t.Errorf("%s: %+v", request, failed)
					}
				}
			})
		})
	}
}

func TestWhatIsInjectedIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse), stage(schema.SubagentComplete, schema.PostToolUse))
		if got, failed := f.request("inject.a", `{"content":"hello"}`); failed != nil || got != `{"key":"k","sequence":1,"state":"queued"}` {
			t.Error(got, failed)
		}
		f.request("inject.a", `{"content":"`+strings.Repeat("long ", 300_000)+`"}`)
		f.request("inject.a", `{"subagent":{"id":"s1","status":"timeout","error":"too slow"}}`)
		f.request("inject.a", `{"subagent":{"id":"s2","status":"completed","answer":"`+strings.Repeat("answer", 100_000)[:500_000]+`"}}`)
		for i, want := range []schema.Item{
			{Producer: "operator", Source: schema.SourceHuman, Strategy: schema.ToolResult, Content: "hello"},
			{Producer: "operator", Source: schema.SourceHuman, Strategy: schema.ToolResult, Object: &schema.Object{Size: 1_500_000}},
			{Producer: "operator", Source: schema.SourceSubagent, Strategy: schema.ToolResult, Subagent: &schema.SubagentResult{}},
			{Producer: "operator", Source: schema.SourceSubagent, Strategy: schema.ToolResult, Object: &schema.Object{Size: 500_044}},
		} {
			it := m.items[i]
			if it.Producer != want.Producer || it.Source != want.Source || it.Strategy != want.Strategy || it.Content != want.Content || it.Name == "" ||
				(it.Object == nil) != (want.Object == nil) || it.Object != nil && it.Object.Size != want.Object.Size || (it.Subagent == nil) != (want.Subagent == nil) {
				t.Errorf("%+v %+v", it, it.Object)
			}
		}
		v := f.ask(event(schema.PostToolUse))
		if len(v.Injections) != 2 || !strings.Contains(v.Injections[1].Content, `"status":"completed"`) || !strings.Contains(v.Injections[0].Content, "hello") || !strings.Contains(v.Injections[0].Content, "long long") {
			t.Errorf("%q", listInjections(v))
		}
	})
}

func TestDrainSaysAllInOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.MidStreamInjection, schema.PostToolUse), stage(schema.HumanInput, schema.PostToolUse))
		m.put(human("stop"))
		m.put(&schema.Item{Source: "ci", Content: "tests failed", Matcher: "Bash"})
		var answers [2]string
		for i := range answers {
			var failed *schema.ControlError
			if answers[i], failed = f.request("drain.a", `{"event_id":"`+id(1)+`"}`); failed != nil {
				t.Fatal(failed)
			}
		}
		var got schema.DrainAnswer
		if err := schema.Unmarshal([]byte(answers[0]), &got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.Content, "stop") || !strings.Contains(got.Content, "tests failed") || len(got.Injections) != 2 || got.Fabric != "fabric-1" || got.EventID != id(1) {
			t.Errorf("%+v", got)
		}
		if answers[0] != answers[1] {
			t.Errorf("asked again it is another one: %s", answers[1])
		}
		if got := m.recorded("claim"); !strings.HasSuffix(got[0], "any true") {
			t.Errorf("%q", got)
		}
		if _, failed := f.request("ack.a", `{"fabric":"fabric-1","events":["`+strings.ToUpper(id(1))+`"]}`); failed != nil || len(m.recorded("ack a ["+id(1)+"]")) != 1 {
			t.Errorf("%v, %q", failed, m.recorded("ack"))
		}
	})
}

func TestAcksOfAnotherFabricChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		f.request("ack.a", `{"fabric":"fabric-2","events":["`+id(1)+`"]}`)
		f.request("ack.a", `{"fabric":"fabric-1","events":["`+id(2)+`"],"hold":true}`)
		f.request("ack.a", `{"fabric":"fabric-1","events":["`+id(3)+`"]}`)
		f.request("ack.a", `{"fabric":"fabric-1","events":["`+id(3)+`"]}`)
		if got := strings.Join(m.recorded(""), "; "); got != "hold a ["+id(2)+"]; ack a ["+id(3)+"]" {
			t.Error(got)
		}
	})
}

func TestAnswersGoToTheSessionUnderTheirName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.texts["d"] = "x"
		f := remembering(t, m, library{})
		got, failed := f.request("answer.a", `{"session":"s","content":"42","workspace":"/w","snapshot":{"digest":"d","size":1}}`)
		if failed != nil || got != `{"key":"k","sequence":1,"state":"queued","name":"agent1","label":"agent1.1"}` {
			t.Error(got, failed)
		}
		wanted := &schema.Item{
			Scope: schema.Scope{Session: "s"}, Producer: "answer", Name: "agent1.1", Sequence: 1, Source: schema.SourcePeer, Strategy: schema.ToolResult,
			Content: "42", LateJoiners: true, Except: "a", Author: "a",
			Answer: &schema.PeerAnswer{Name: "agent1", Label: "agent1.1", Workspace: "/w", Snapshot: &schema.Object{Digest: "d", Size: 1}},
		}
		if diff := cmp.Diff(wanted, m.items[0]); diff != "" {
			t.Error(diff)
		}
		f.request("answer.a", `{"session":"s","content":"42","label":"agent1.1"}`)
		if m.peers.Answers != 1 || len(m.items) != 1 {
			t.Errorf("%d answers were counted of one", m.peers.Answers)
		}
	})
}

func TestOnlyObjectsThatAnItemNamesAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.texts["d"], m.texts["secret"] = "content", "of somebody else"
		f := remembering(t, m, library{})
		var got schema.FetchAnswer
		answer, failed := f.request("fetch.a", `{"digest":"d","offset":3}`)
		if failed != nil || schema.Unmarshal([]byte(answer), &got) != nil || string(got.Data) != "tent" || got.Size != 7 {
			t.Errorf("%s, %v", answer, failed)
		}
		if answer, failed := f.request("fetch.a", `{"digest":"secret"}`); failed == nil || failed.Code != schema.CodeNotFound {
			t.Errorf("%s, %v", answer, failed)
		}
	})
}

func TestModesAndCheckpointsAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		m.put(human("x"))
		for request, want := range map[string]string{`{}`: `{"vote_only":false}`, `{"vote_only":true}`: `{"vote_only":true}`} {
			m.peers.VoteOnly = false
			if got, failed := f.request("mode.a", request); failed != nil || got != want {
				t.Errorf("%s: %s, %v", request, got, failed)
			}
		}
		f.request("mode.a", `{"vote_only":true}`)
		if got, failed := f.request("checkpoint.a", ``); failed != nil || got != "{}" {
			t.Error(got, failed)
		}
		if !m.peers.VoteOnly || m.peers.Checkpoint != 1 {
			t.Errorf("%+v", m.peers)
		}
	})
}

func TestRoundsAreStartedAndShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, stage(schema.RoundTimeoutPost, schema.PostToolUse))
		started, failed := f.request("round.a", `{"action":"start","initial":"10m0s"}`)
		if failed != nil || !strings.Contains(started, `"initial":"10m0s"`) {
			t.Error(started, failed)
		}
		if shown, failed := f.request("round.a", ``); failed != nil || shown != started {
			t.Error(shown, failed)
		}
		if wrapped, failed := f.request("round.a", `{"action":"wrapup"}`); failed != nil || !strings.Contains(wrapped, `"wrap_up":true`) {
			t.Error(wrapped, failed)
		}
		if got := m.recorded("enqueue"); len(got) != 1 {
			t.Errorf("an operator's wish is not warned of at once: %q", got)
		}
	})
}

func TestStatusAndMetricsTellWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		m.put(human("x"))
		m.put(&schema.Item{Source: "ci", Content: "x"})
		m.put(&schema.Item{Source: "cd", Content: "x"})
		m.round = over()
		st := f.status("")
		if st.BlockedRounds != 1 || st.Pending["ci"] != 1 || st.Pending["human"] != 1 || st.OldestPending != schema.Duration(3*time.Second) {
			t.Errorf("%+v", st)
		}
		for source, want := range map[string]float64{"human": 1, "other": 2, "peer": 0, "ci": -1} {
			if n := f.value("injections_pending", "source="+source); n != want {
				t.Errorf("%s: %v", source, n)
			}
		}
		if f.value("injections_oldest_pending_seconds") != 3 || f.value("mirror_lag_seconds") != 1 || f.value("injections_remembered_seconds") != 3600 {
			t.Error("the age, the lag or the memory is wrong")
		}
	})
}

func TestWhatAnAgentSaysOfItselfIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		q := event(schema.SessionStart)
		q.Data = []byte(`{"runtime":"claude","agent_id":"somebody else","labels":{"host":"dev-7","runtime_version":"2.1.329"}}`)
		f.ask(q)
		f.ask(event(schema.PreToolUse))
		f.ask(event(schema.SessionEnd))
		if got := m.recorded("describe"); len(got) != 2 || got[0] != "describe a s claude 2.1.329 dev-7" || got[1] != "describe a s ended" {
			t.Errorf("%q", got)
		}
	})
}

// TestEveryVerbIsAnEndpointWithItsSchema checks that the information about the service describes
// what each verb takes.
func TestEveryVerbIsAnEndpointWithItsSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := remembering(t, newMemory(), library{})
		schemas := map[string]string{}
		for _, service := range []string{"hookfabric-aggregator", "hookfabric-aggregator-requests"} {
			var info micro.Info
			if err := schema.Unmarshal(f.control("$SRV.INFO."+service).Data, &info); err != nil {
				t.Fatal(err)
			}
			for _, e := range info.Endpoints {
				if e.Subject == "hook.v1.ctl."+e.Name+".*" {
					schemas[e.Name] = e.Metadata["request"]
				}
			}
		}
		for _, verb := range []string{
			schema.VerbInject, schema.VerbPending, schema.VerbWithdraw, schema.VerbAck, schema.VerbDrain, schema.VerbFetch,
			schema.VerbAnswer, schema.VerbRelay, schema.VerbMode, schema.VerbCheckpoint, schema.VerbRound,
		} {
			if !strings.Contains(schemas[verb], `"type": "object"`) {
				t.Errorf("%s: %q", verb, schemas[verb])
			}
		}
	})
}

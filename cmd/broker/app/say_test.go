package app_test

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// made matches a key that the command made.
var made = regexp.MustCompile(`"key":"[0-9a-f-]{36}"`)

// A fakeControl answers each control request with the answer that a test has for its subject, and
// records the requests.
type fakeControl struct {
	t   *testing.T
	url string
	nc  *nats.Conn

	mu      sync.Mutex // guards all below
	answers map[string]any
	asked   []string
}

func newFakeControl(t *testing.T) *fakeControl {
	t.Helper()
	server := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	s := &fakeControl{t: t, url: server.ClientURL()}
	nc := bustest.Connect(t, server, "counter")
	s.nc = nc
	if _, err := nc.Subscribe("hook.v1.ctl.*.*", s.serve); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOOKFABRIC_NATS", s.url)
	t.Setenv("HOOKFABRIC_AGENT", "")
	t.Setenv("HOOKFABRIC_SESSION", "")
	return s
}

func (s *fakeControl) serve(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	subject := strings.TrimPrefix(m.Subject, "hook.v1.ctl.")
	s.asked = append(s.asked, subject+" "+made.ReplaceAllLiteralString(string(m.Data), `"key":"MADE"`))
	answer, ok := s.answers[subject]
	if !ok {
		answer = &schema.ControlError{Code: schema.CodeNotFound, Message: "nothing is laid out for " + subject}
	}
	if by, ok := answer.(func(request string) any); ok {
		answer = by(string(m.Data))
	}
	reply := nats.NewMsg(m.Reply)
	if e, ok := answer.(*schema.ControlError); ok {
		reply.Header.Set(schema.HeaderServiceError, e.Message)
		reply.Header.Set(schema.HeaderServiceErrorCode, e.Code)
	}
	var err error
	if reply.Data, err = schema.Marshal(answer); err == nil {
		err = m.RespondMsg(reply)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// A commandRun is the result of a command, and the requests that it made.
type commandRun struct {
	Code           int
	Stdout, Stderr string
	Asked          []string
}

func (s *fakeControl) run(answers map[string]any, stdin string, args ...string) (e commandRun) {
	s.mu.Lock()
	s.answers, s.asked = answers, nil
	s.mu.Unlock()
	var stdout, stderr bytes.Buffer
	e.Code = app.Main(s.t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	e.Stdout, e.Stderr = stdout.String(), stderr.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Asked = s.asked
	return e
}

// A commandCase is a command line, the brokers' answers, and the expected result.
type commandCase struct {
	name    string
	args    []string
	stdin   string
	answers map[string]any
	want    commandRun
}

func (s *fakeControl) check(t *testing.T, all []commandCase) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, s.run(c.answers, c.stdin, c.args...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInject(t *testing.T) {
	s := newFakeControl(t)
	queued := schema.Receipt{Key: "a-agent1.operator.k-1", Sequence: 12, State: schema.Queued}
	again := queued
	again.Duplicate, again.State = true, schema.Delivered
	s.check(t, []commandCase{
		{"a text for an agent is queued", []string{"inject", "--agent", "agent1", "Look at spec/."}, "", map[string]any{"inject.agent1": queued},
			commandRun{0, "queued for agent agent1: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.agent1 {"content":"Look at spec/.","key":"MADE"}`}}},
		{"an agent's name is escaped", []string{"inject", "--agent", "team a/1", "hi"}, "", map[string]any{"inject.team=20a=2F1": queued},
			commandRun{0, "queued for agent \"team a/1\": key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.team=20a=2F1 {"content":"hi","key":"MADE"}`}}},
		{"all flags are sent", []string{"inject", "--session", "s1", "--source", "reminder", "--strategy", "user_message", "--matcher", "Bash|Read",
			"--ttl", "90m", "--producer", "ci", "--number", "7", "--late-joiners", "hi"}, "", map[string]any{"inject._": queued},
			commandRun{0, "queued for session s1: key a-agent1.operator.k-1, sequence 12\n", "",
				[]string{`inject._ {"session":"s1","content":"hi","source":"reminder","strategy":"user_message","matcher":"Bash|Read","ttl":"1h30m0s","producer":"ci","number":7,"late_joiners":true}`}}},
		{"a text from stdin loses only its last line end", []string{"inject", "--all", "--key", "k", "-"}, "one\ntwo\n\n", map[string]any{"inject._": queued},
			commandRun{0, "queued for all agents: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject._ {"all":true,"content":"one\ntwo\n","key":"k"}`}}},
		{"a repeated key returns the state of the first message", []string{"inject", "--agent", "agent1", "--key", "1", "hi"}, "", map[string]any{"inject.agent1": again},
			commandRun{0, "already accepted, nothing was stored: key a-agent1.operator.k-1, sequence 12, delivered\n", "", []string{`inject.agent1 {"content":"hi","key":"1"}`}}},
		{"a repeat with a generated key is no duplicate", []string{"inject", "--agent", "agent1", "hi"}, "", map[string]any{"inject.agent1": again},
			commandRun{0, "queued for agent agent1: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.agent1 {"content":"hi","key":"MADE"}`}}},
		{"--json prints the answer", []string{"inject", "--agent", "agent1", "--key", "1", "--json", "hi"}, "", map[string]any{"inject.agent1": again},
			commandRun{0, `{"key":"a-agent1.operator.k-1","sequence":12,"duplicate":true,"state":"delivered"}` + "\n", "", []string{`inject.agent1 {"content":"hi","key":"1"}`}}},
		{"a subagent's result is sent as JSON", []string{"inject", "--agent", "p", "--subagent", `{"id":"s1","status":"failed","error":"no disk","took":"3s"}`}, "", map[string]any{"inject.p": queued},
			commandRun{0, "queued for agent p: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.p {"key":"MADE","subagent":{"id":"s1","status":"failed","error":"no disk","took":"3s"}}`}}},
		{"a background tool's result is sent as JSON", []string{"inject", "--agent", "p", "--background", `{"id":"j1","tool":"build","status":"completed","result":"ok"}`}, "", map[string]any{"inject.p": queued},
			commandRun{0, "queued for agent p: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.p {"key":"MADE","background":{"id":"j1","tool":"build","status":"completed","result":"ok"}}`}}},
		{"a refusal prints the brokers' message", []string{"inject", "--agent", "a", "hi"}, "", map[string]any{"inject.a": &schema.ControlError{Code: schema.CodeTooOld, Message: "number 3 of ci was used up long ago"}},
			commandRun{1, "", "broker: number 3 of ci was used up long ago\n", []string{`inject.a {"content":"hi","key":"MADE"}`}}},
		{"an empty stdin sends nothing", []string{"inject", "--agent", "a", "-"}, "\n", nil,
			commandRun{1, "", "broker: stdin has no text; nothing was sent\n", nil}},
		{"invalid UTF-8 is not sent", []string{"inject", "--agent", "a", "-"}, "\xff\xfe", nil,
			commandRun{1, "", "broker: the text is not UTF-8; convert it, or put it into a file and send the file's path\n", nil}},
	})
}

// A command that runs beside an agent has the agent's variables.
func TestFlagsWinOverVariables(t *testing.T) {
	s := newFakeControl(t)
	t.Setenv("HOOKFABRIC_AGENT", "env")
	queued := schema.Receipt{Key: "k", State: schema.Queued}
	s.check(t, []commandCase{
		{"a variable sets its flag", []string{"inject", "hi"}, "", map[string]any{"inject.env": queued},
			commandRun{0, "queued for agent env: key k\n", "", []string{`inject.env {"content":"hi","key":"MADE"}`}}},
		{"a flag that excludes another one's variable wins", []string{"inject", "--all", "hi"}, "", map[string]any{"inject._": queued},
			commandRun{0, "queued for all agents: key k\n", "", []string{`inject._ {"all":true,"content":"hi","key":"MADE"}`}}},
	})
	t.Setenv("HOOKFABRIC_SESSION", "s1")
	if got := s.run(nil, "", "inject", "hi"); got.Code != 2 || !strings.Contains(got.Stderr, "--agent and --session contradict each other") {
		t.Errorf("two variables that exclude each other: %+v", got)
	}
}

func TestPending(t *testing.T) {
	s := newFakeControl(t)
	minutes := func(n int) schema.Duration { return schema.Duration(time.Duration(n) * time.Minute) }
	waiting := schema.PendingAnswer{Total: 3, Items: []schema.PendingItem{
		{Key: "a-agent1.operator.k-1", Sequence: 4, Scope: schema.Scope{Agent: "agent1"}, Source: "human", Strategy: schema.ToolResult, State: schema.Leased, Event: "e1", Length: 120, Age: minutes(95)},
		{Key: "s-s1.answer.k-agent2=2E1", Sequence: 5, Scope: schema.Scope{Session: "s1"}, Source: "peer", State: schema.Queued, Length: 9, Age: minutes(2), ExpiresIn: minutes(24 * 60), Delivered: 2},
		{Key: "all.ops.1", Sequence: 6, Source: "human", State: schema.Queued, Length: 5, Age: schema.Duration(3200 * time.Millisecond), ExpiresIn: minutes(61)},
	}}
	const table = `STATE   AGE    SOURCE  FOR                     BYTES  EXPIRES  KEY
leased  1h35m  human   agent agent1            120    never    a-agent1.operator.k-1
queued  2m     peer    session s1 (2 have it)  9      in 1d    s-s1.answer.k-agent2=2E1
queued  3s     human   all agents              5      in 1h1m  all.ops.1

3 wait: human 2, peer 1
`
	more := schema.PendingAnswer{Total: 7, Items: waiting.Items[:1]}
	s.check(t, []commandCase{
		{"messages are listed as a table", []string{"pending"}, "", map[string]any{"pending._": waiting},
			commandRun{0, table, "", []string{"pending._ {}"}}},
		{"--json prints the answer", []string{"pending", "--json"}, "", map[string]any{"pending._": schema.PendingAnswer{Items: []schema.PendingItem{}}},
			commandRun{0, `{"items":[],"total":0}` + "\n", "", []string{"pending._ {}"}}},
		{"without messages it suggests a command", []string{"pending"}, "", map[string]any{"pending._": schema.PendingAnswer{}},
			commandRun{0, "no messages wait; send one with 'broker inject --agent A TEXT'\n", "", []string{"pending._ {}"}}},
		{"without messages for one agent, too", []string{"pending", "--agent", "a1"}, "", map[string]any{"pending.a1": schema.PendingAnswer{}},
			commandRun{0, "no messages wait for agent a1; send one with 'broker inject --agent a1 TEXT'\n", "", []string{"pending.a1 {}"}}},
		{"too many messages are counted", []string{"pending", "--limit", "1"}, "", map[string]any{"pending._": more},
			commandRun{0, "STATE   AGE    SOURCE  FOR           BYTES  EXPIRES  KEY\nleased  1h35m  human   agent agent1  120    never    a-agent1.operator.k-1\n\n" +
				"7 wait; the first 1 are listed, list more with --limit 7\n", "", []string{`pending._ {"limit":1}`}}},
	})
}

func TestWithdraw(t *testing.T) {
	s := newFakeControl(t)
	is := func(state schema.ItemState, n int) map[string]any {
		return map[string]any{"withdraw._": schema.WithdrawAnswer{Key: "k", State: state, Delivered: n}}
	}
	asked := []string{`withdraw._ {"key":"k"}`}
	s.check(t, []commandCase{
		{"a waiting message is withdrawn", []string{"withdraw", "k"}, "", is(schema.Withdrawn, 0), commandRun{0, "k is withdrawn\n", "", asked}},
		{"the number of receivers is printed", []string{"withdraw", "k"}, "", is(schema.Withdrawn, 3), commandRun{0, "k is withdrawn; 3 agents received it before\n", "", asked}},
		{"a leased message is not withdrawn", []string{"withdraw", "k"}, "", is(schema.Leased, 0),
			commandRun{1, "", "broker: k is being delivered; if the agent's side does not acknowledge it within 30s, you can withdraw it then\n", asked}},
		{"a delivered message is not withdrawn", []string{"withdraw", "--json", "k"}, "", is(schema.Delivered, 0),
			commandRun{1, `{"key":"k","state":"delivered"}` + "\n", "broker: k was already delivered and cannot be withdrawn\n", asked}},
		{"each of several is tried", []string{"withdraw", "k", "l"}, "", map[string]any{"withdraw._": &schema.ControlError{Code: schema.CodeNotFound, Message: "there is no such message"}},
			commandRun{1, "", "broker: there is no such message\nbroker: there is no such message\nbroker: 2 of 2 were not withdrawn\n", []string{`withdraw._ {"key":"k"}`, `withdraw._ {"key":"l"}`}}},
	})
}

func TestRound(t *testing.T) {
	s := newFakeControl(t)
	d := func(x time.Duration) *schema.Duration { v := schema.Duration(x); return &v }
	begun := schema.Round{Agent: "a", Start: 3, Initial: d(10 * time.Minute), Subsequent: d(5 * time.Minute), Grace: *d(2 * time.Minute)}
	later := begun
	later.Number, later.Elapsed, later.WrapUp = 1, *d(70 * time.Second), true
	blocked := later
	blocked.Warned, blocked.Since, blocked.Denials, blocked.Terminate = true, *d(3 * time.Minute), 10, true
	warned := later
	warned.Warned, warned.Since = true, *d(30 * time.Second)
	s.check(t, []commandCase{
		{"a round begins", []string{"round", "start", "--agent", "a", "--initial", "10m", "--subsequent", "5m", "--grace", "2m", "--number", "0"}, "", map[string]any{"round.a": begun},
			commandRun{0, "round 0 of agent a begins: soft limit 10m, grace 2m\n", "", []string{`round.a {"action":"start","initial":"10m0s","subsequent":"5m0s","grace":"2m0s","number":0}`}}},
		{"flags that are not set are not sent", []string{"round", "start", "--agent", "a"}, "", map[string]any{"round.a": schema.Round{Grace: schema.DefaultGrace}},
			commandRun{0, "round 0 of agent a begins: without a soft limit, grace 2m\n", "", []string{`round.a {"action":"start"}`}}},
		{"a limit of 0 is sent", []string{"round", "start", "--agent", "a", "--initial", "0s"}, "", map[string]any{"round.a": schema.Round{Initial: d(0), Grace: schema.DefaultGrace}},
			commandRun{0, "round 0 of agent a begins: soft limit 0s, grace 2m\n", "", []string{`round.a {"action":"start","initial":"0s"}`}}},
		{"a round is shown", []string{"round", "show", "--agent", "a"}, "", map[string]any{"round.a": later},
			commandRun{0, "round 1 of agent a: 1m10s old, soft limit 5m, grace 2m, the warning waits for delivery\n", "", []string{`round.a {"action":"show"}`}}},
		{"a warned round has the rest of its grace period", []string{"round", "show", "--agent", "a"}, "", map[string]any{"round.a": warned},
			commandRun{0, "round 1 of agent a: 1m10s old, soft limit 5m, grace 2m, warned 30s ago, 1m30s left\n", "", []string{`round.a {"action":"show"}`}}},
		{"a blocked round is over", []string{"round", "show", "--agent", "a"}, "", map[string]any{"round.a": blocked},
			commandRun{0, "round 1 of agent a: 1m10s old, soft limit 5m, grace 2m, warned 3m ago, only terminal tools pass, calls denied in a row: 10, the run must end\n", "", []string{`round.a {"action":"show"}`}}},
		{"an agent is asked to wrap up", []string{"round", "wrapup", "--agent", "a", "--grace", "30s"}, "", map[string]any{"round.a": later},
			commandRun{0, "agent a will be warned that its round ends: round 1, 1m10s old, soft limit 5m, grace 2m\n", "", []string{`round.a {"action":"wrapup","grace":"30s"}`}}},
		{"--json prints the round", []string{"round", "show", "--agent", "a", "--json"}, "", map[string]any{"round.a": begun},
			commandRun{0, `{"agent":"a","start":3,"number":0,"initial":"10m0s","subsequent":"5m0s","grace":"2m0s","elapsed":"0s"}` + "\n", "", []string{`round.a {"action":"show"}`}}},
	})
}

func TestModeAndCheckpoint(t *testing.T) {
	s := newFakeControl(t)
	is := func(voteOnly bool) map[string]any {
		return map[string]any{"mode.a": schema.ModeAnswer{VoteOnly: voteOnly}}
	}
	const midStream, voteOnly = "agent a is mid-stream: it reads other agents' answers while its turn goes on\n", "agent a is vote-only: it receives other agents' answers when it restarts\n"
	s.check(t, []commandCase{
		{"the mode is shown", []string{"mode", "--agent", "a"}, "", is(false), commandRun{0, midStream, "", []string{"mode.a {}"}}},
		{"the mode is set to vote-only", []string{"mode", "--agent", "a", "--vote-only"}, "", is(true), commandRun{0, voteOnly, "", []string{`mode.a {"vote_only":true}`}}},
		{"the mode is set to mid-stream", []string{"mode", "--agent", "a", "--mid-stream"}, "", is(false), commandRun{0, midStream, "", []string{`mode.a {"vote_only":false}`}}},
		{"--json prints the answer", []string{"mode", "--agent", "a", "--json"}, "", is(true), commandRun{0, `{"vote_only":true}` + "\n", "", []string{"mode.a {}"}}},
		{"an agent restarts", []string{"checkpoint", "--agent", "a"}, "", map[string]any{"checkpoint.a": struct{}{}},
			commandRun{0, "agent a restarts: the broker releases the answers that it held back\n", "", []string{"checkpoint.a {}"}}},
		{"a refusal prints the brokers' message", []string{"checkpoint", "--agent", "a"}, "", map[string]any{"checkpoint.a": &schema.ControlError{Code: schema.CodeUnavailable, Message: "this broker does not store messages for agents"}},
			commandRun{1, "", "broker: this broker does not store messages for agents\n", []string{"checkpoint.a {}"}}},
	})
	for _, args := range [][]string{{"mode"}, {"checkpoint"}, {"mode", "--agent", "a", "--vote-only", "--mid-stream"}} {
		if got := s.run(nil, "", args...); got.Code != 2 || len(got.Asked) > 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestHooks(t *testing.T) {
	s := newFakeControl(t)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	done := schema.HooksAnswer{Version: 4, Changed: true, Names: []string{"audit"}}
	refused := schema.HooksAnswer{Version: 3, Refused: true, Problems: []schema.Problem{{Node: "w1", Hook: "audit", Error: "no module named policies"}}}
	listed := schema.HooksAnswer{Version: 4, Hooks: []schema.Hook{{Name: "audit", Event: schema.PreToolUse, Type: "python", Handler: "policies.audit"}}}
	const hooks = `{"PreToolUse": [{"name": "audit", "handler": "policies.audit"}]}`
	asked := `{"action":"register","hooks":{"PreToolUse":[{"name":"audit","handler":"policies.audit"}]},"dir":"` + dir + `"}`
	s.check(t, []commandCase{
		{"hooks are registered for all agents", []string{"hooks", "register", "-"}, hooks, map[string]any{"hooks._": done},
			commandRun{0, "registered audit: version 4 is active\n", "", []string{"hooks._ " + asked}}},
		{"hooks are registered for one agent", []string{"hooks", "register", "-", "--agent", "a"}, hooks, map[string]any{"hooks.a": done},
			commandRun{0, "registered audit: version 4 is active\n", "", []string{"hooks.a " + asked}}},
		{"hooks that a node cannot load are refused", []string{"hooks", "register", "-"}, hooks, map[string]any{"hooks._": refused},
			commandRun{1, "", "node w1 cannot load hook audit: no module named policies\nbroker: the hooks were rejected, and nothing changed; correct the problems above, or register them with --force\n", []string{"hooks._ " + asked}}},
		{"invalid JSON is not sent", []string{"hooks", "register", "-"}, "PreToolUse:", nil,
			commandRun{1, "", `broker: stdin is not JSON; write the value of hooks: in a hooks.yaml, as JSON, such as {"PreToolUse": [{"handler": "./check.sh"}]}` + "\n", nil}},
		{"hooks are removed by name", []string{"hooks", "unregister", "audit"}, "", map[string]any{"hooks._": done},
			commandRun{0, "unregistered audit: version 4 is active\n", "", []string{`hooks._ {"action":"unregister","names":["audit"]}`}}},
		{"hooks are listed", []string{"hooks", "list"}, "", map[string]any{"hooks._": listed},
			commandRun{0, "audit  PreToolUse  *  python  policies.audit\n", "", []string{`hooks._ {"action":"list"}`}}},
	})
}

func TestAnswer(t *testing.T) {
	s := newFakeControl(t)
	receipt := schema.AnswerReceipt{Receipt: schema.Receipt{Key: "s-s1.x.k-agent2=2E1", Sequence: 9, State: schema.Queued}, Name: "agent2", Label: "agent2.1"}
	s.check(t, []commandCase{
		{"an answer goes to the other agents", []string{"answer", "--session", "s1", "--agent", "bob", "--label", "agent2.1", "42"}, "", map[string]any{"relay.bob": receipt},
			commandRun{0, "agent2.1 goes to the other agents of session s1: key s-s1.x.k-agent2=2E1, sequence 9\n", "", []string{`relay.bob {"session":"s1","label":"agent2.1","content":"42"}`}}},
		{"--json prints the answer", []string{"answer", "--session", "s1", "--agent", "bob", "--json", "-"}, "42\n", map[string]any{"relay.bob": receipt},
			commandRun{0, `{"key":"s-s1.x.k-agent2=2E1","sequence":9,"state":"queued","name":"agent2","label":"agent2.1"}` + "\n", "", []string{`relay.bob {"session":"s1","content":"42"}`}}},
	})
}

// Wrong usage ends with exit code 2 and one sentence, without a request.
func TestCommandsRejectWrongUsage(t *testing.T) {
	s := newFakeControl(t)
	for _, c := range []struct{ line, says string }{
		{"inject hi", "no receiver is named; write --agent A, --session S or --all"},
		{"inject --agent a --all hi", "--agent and --all contradict each other; use one of them"},
		{"inject --agent a --session s --all hi", "--agent and --session and --all contradict each other"},
		{"inject --agent a", "the text is missing; write it in quotes, or - for stdin"},
		{"inject --agent a EMPTY", "the text is empty"},
		{"inject --agent a two words", `there are 2 texts; put quotes around the message: "two words"`},
		{"inject --agent a --subagent {} hi", "a text and a result as JSON exclude each other; write one of them"},
		{"inject --agent a --subagent {} --background {}", "--subagent and --background contradict each other"},
		{"inject --agent a --subagent nonsense", "--subagent cannot be read"},
		{"inject --agent a --background []", "--background cannot be read"},
		{"inject --agent a --strategy tool_reslt hi", `unknown strategy "tool_reslt"; did you mean tool_result?`},
		{"inject --agent a --strategy UserMessage hi", `did you mean user_message?`},
		{"inject --agent a --strategy shout hi", `unknown strategy "shout"; write tool_result or user_message`},
		{"inject --agent a --ttl -5s hi", "--ttl is -5s; use a duration above zero"},
		{"inject --agent a --ttl soon hi", "--ttl"},
		{"inject --agent a --number 7 hi", "--number needs --producer"},
		{"inject --agent a --producer p --number 0 hi", "--number is 0; numbers start at 1"},
		{"inject --agent a --producer p --number 1 --key k hi", "--key and --number contradict each other"},
		{"inject --agent a --late-joiners hi", "--late-joiners has no effect with --agent"},
		{"inject --agent a --timeout 0s hi", "--timeout is 0s; use a duration above zero"},
		{"answer --agent a hi", "--session is missing; name the session"},
		{"answer --session s hi", "--agent is missing; name the agent that gives the answer"},
		{"answer --session s --agent a", "the text is missing"},
		{"answer --session s --agent a two words", "put quotes around the message"},
		{"pending extra", `unknown argument "extra"`},
		{"pending --limit -1", "--limit is -1"},
		{"pending --limit 10001", "--limit is 10001; use a number of lines from 0 to 10000"},
		{"withdraw", "no key is named; use keys that 'broker pending' shows"},
		{"round frobnicate", `unknown argument "frobnicate"`},
		{"round start", "--agent is missing; name the agent of the round"},
		{"round start --agent a --initial -1s", "--initial is -1s; use a duration of 0 or more"},
		{"round start --agent a --grace x", "--grace"},
		{"round start --agent a --number -1", "--number is -1; rounds are numbered from 0"},
		{"round show --agent a --initial 1s", "--initial"},
		{"round show --agent a extra", `unknown argument "extra"`},
	} {
		t.Run(c.line, func(t *testing.T) {
			args := strings.Fields(c.line)
			for i := range args {
				args[i] = strings.TrimPrefix(args[i], "EMPTY")
			}
			got := s.run(nil, "", args...)
			if got.Code != 2 || got.Stdout != "" || got.Asked != nil || strings.Count(got.Stderr, "\n") != 1 || !strings.Contains(got.Stderr, c.says) {
				t.Errorf("%+v; want %q", got, c.says)
			}
		})
	}
}

func TestAnUnansweredRequestIsReported(t *testing.T) {
	server := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	silent := bustest.Connect(t, server, "silent")
	if _, err := silent.Subscribe("hook.v1.ctl.*.silent", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := silent.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	s := &fakeControl{t: t}
	t.Setenv("HOOKFABRIC_NATS", server.ClientURL())
	for _, c := range []struct {
		name, line string
		says, not  string
	}{
		{"a request without receivers certainly failed", "inject --agent a hi", "no broker answers at", "not known"},
		{"an unanswered message may have been accepted", "inject --agent silent --timeout 50ms hi", "the broker may have accepted the message: run the command again with --key ", "pending"},
		{"an unanswered message with a key can be repeated", "inject --agent silent --timeout 50ms --key k hi", "run the same command again, and it is accepted once", "pending"},
		{"an unanswered answer may have been accepted", "answer --agent silent --session s --timeout 50ms hi", "the broker may have accepted the answer: look with 'broker pending'", "run the command again"},
		{"an unanswered answer with a label can be repeated", "answer --agent silent --session s --label agent1.1 --timeout 50ms hi", "run the command again with the same label", "pending"},
		{"the time limit is printed", "pending --agent silent --timeout 50ms", "no answer came within 50ms", "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.run(nil, "", strings.Fields(c.line)...)
			if got.Code != 1 || !strings.Contains(got.Stderr, c.says) || strings.Contains(got.Stderr, c.not) {
				t.Errorf("%+v; want %q", got, c.says)
			}
		})
	}
}

func TestStatusCountsWaitingMessages(t *testing.T) {
	s := newFakeControl(t)
	st := schema.FabricStatus{Fabric: "f", Ready: true, Pending: map[string]int{"peer": 2, "human": 1, "other": 0},
		OldestPending: schema.Duration(90 * time.Minute), BlockedRounds: 3}
	for i := range 12 {
		st.Limited = append(st.Limited, schema.LimitedStatus{Name: "claude 1", Limit: "calls", Refused: 12 - i, Since: schema.Duration(90 * time.Second)})
	}
	got := s.run(map[string]any{"status._": st}, "", "status")
	const want = "calls    0 under way\npending  3: human 1, peer 2; oldest 1h30m\nrounds   3 over their hard limit: only tools that end the round are allowed\n" +
		"LIMITED  \"claude 1\" exceeds its limit of calls under way: 12 refused in the last 1m30s, the last one 0s ago\n"
	if got.Code != 0 || !strings.Contains(got.Stdout, want) || strings.Count(got.Stdout, "LIMITED") != 11 || !strings.Contains(got.Stdout, "LIMITED  2 more; --json lists them\n") {
		t.Errorf("%+v", got)
	}
	got = s.run(map[string]any{"status._": schema.FabricStatus{Pending: map[string]int{"human": 0}}}, "", "status")
	if strings.Contains(got.Stdout, "pending") || strings.Contains(got.Stdout, "rounds") || strings.Contains(got.Stdout, "LIMITED") {
		t.Errorf("%+v", got)
	}
}

package app_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/embedded"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// made is a key that the command makes, where none is given.
var made = regexp.MustCompile(`"key":"[0-9a-f-]{36}"`)

// A counter stands for the brokers: it answers every control request with what
// a test has laid out for its subject, and notes what was asked.
type counter struct {
	t   *testing.T
	url string
	nc  *nats.Conn

	mu      sync.Mutex // guards all below
	answers map[string]any
	asked   []string
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	server := bustest.StartWith(t, embedded.Options{Listen: "127.0.0.1:0"})
	s := &counter{t: t, url: server.ClientURL()}
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

func (s *counter) serve(m *nats.Msg) {
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

// A closing is how a command ended, and what was asked of the brokers.
type closing struct {
	Code           int
	Stdout, Stderr string
	Asked          []string
}

func (s *counter) run(answers map[string]any, stdin string, args ...string) (e closing) {
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

// A saying is a command line, what the brokers answer, and what comes of it.
type saying struct {
	name    string
	args    []string
	stdin   string
	answers map[string]any
	want    closing
}

func (s *counter) hold(t *testing.T, all []saying) {
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
	s := newCounter(t)
	queued := schema.Receipt{Key: "a-agent1.operator.k-1", Sequence: 12, State: schema.Queued}
	again := queued
	again.Duplicate, again.State = true, schema.Delivered
	s.hold(t, []saying{
		{"a text for an agent is queued", []string{"inject", "--agent", "agent1", "Look at spec/."}, "", map[string]any{"inject.agent1": queued},
			closing{0, "queued for agent agent1: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.agent1 {"content":"Look at spec/.","key":"MADE"}`}}},
		{"the agent's name may need escapes", []string{"inject", "--agent", "team a/1", "hi"}, "", map[string]any{"inject.team=20a=2F1": queued},
			closing{0, "queued for agent \"team a/1\": key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.team=20a=2F1 {"content":"hi","key":"MADE"}`}}},
		{"all that can be said of it is sent", []string{"inject", "--session", "s1", "--source", "reminder", "--strategy", "user_message", "--matcher", "Bash|Read",
			"--ttl", "90m", "--producer", "ci", "--number", "7", "--late-joiners", "hi"}, "", map[string]any{"inject._": queued},
			closing{0, "queued for session s1: key a-agent1.operator.k-1, sequence 12\n", "",
				[]string{`inject._ {"session":"s1","content":"hi","source":"reminder","strategy":"user_message","matcher":"Bash|Read","ttl":"1h30m0s","producer":"ci","number":7,"late_joiners":true}`}}},
		{"a text from stdin loses the last line's end only", []string{"inject", "--all", "--key", "k", "-"}, "one\ntwo\n\n", map[string]any{"inject._": queued},
			closing{0, "queued for all agents: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject._ {"all":true,"content":"one\ntwo\n","key":"k"}`}}},
		{"a repeat says what became of the first", []string{"inject", "--agent", "agent1", "--key", "1", "hi"}, "", map[string]any{"inject.agent1": again},
			closing{0, "accepted before, and nothing was stored now: key a-agent1.operator.k-1, sequence 12, delivered\n", "", []string{`inject.agent1 {"content":"hi","key":"1"}`}}},
		{"a repeat under a key that was made here is the first", []string{"inject", "--agent", "agent1", "hi"}, "", map[string]any{"inject.agent1": again},
			closing{0, "queued for agent agent1: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.agent1 {"content":"hi","key":"MADE"}`}}},
		{"--json prints the answer", []string{"inject", "--agent", "agent1", "--key", "1", "--json", "hi"}, "", map[string]any{"inject.agent1": again},
			closing{0, `{"key":"a-agent1.operator.k-1","sequence":12,"duplicate":true,"state":"delivered"}` + "\n", "", []string{`inject.agent1 {"content":"hi","key":"1"}`}}},
		{"a subagent's result is sent in its form", []string{"inject", "--agent", "p", "--subagent", `{"id":"s1","status":"failed","error":"no disk","took":"3s"}`}, "", map[string]any{"inject.p": queued},
			closing{0, "queued for agent p: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.p {"key":"MADE","subagent":{"id":"s1","status":"failed","error":"no disk","took":"3s"}}`}}},
		{"so is that of a background tool", []string{"inject", "--agent", "p", "--background", `{"id":"j1","tool":"build","status":"completed","result":"ok"}`}, "", map[string]any{"inject.p": queued},
			closing{0, "queued for agent p: key a-agent1.operator.k-1, sequence 12\n", "", []string{`inject.p {"key":"MADE","background":{"id":"j1","tool":"build","status":"completed","result":"ok"}}`}}},
		{"a refusal is the brokers' sentence", []string{"inject", "--agent", "a", "hi"}, "", map[string]any{"inject.a": &schema.ControlError{Code: schema.CodeTooOld, Message: "number 3 of ci was used up long ago"}},
			closing{1, "", "broker: number 3 of ci was used up long ago\n", []string{`inject.a {"content":"hi","key":"MADE"}`}}},
		{"an empty stdin sends nothing", []string{"inject", "--agent", "a", "-"}, "\n", nil,
			closing{1, "", "broker: there is no text on stdin, and nothing was sent\n", nil}},
		{"what is no text is not sent", []string{"inject", "--agent", "a", "-"}, "\xff\xfe", nil,
			closing{1, "", "broker: the text is no UTF-8; convert it, or put it into a file and say where that is\n", nil}},
	})
}

// TestTheEnvironmentAndWhatIsSaid: who runs a command beside an agent has the
// agent's variables.
func TestTheEnvironmentAndWhatIsSaid(t *testing.T) {
	s := newCounter(t)
	t.Setenv("HOOKFABRIC_AGENT", "env")
	queued := schema.Receipt{Key: "k", State: schema.Queued}
	s.hold(t, []saying{
		{"a variable stands for its flag", []string{"inject", "hi"}, "", map[string]any{"inject.env": queued},
			closing{0, "queued for agent env: key k\n", "", []string{`inject.env {"content":"hi","key":"MADE"}`}}},
		{"a flag that excludes another one's variable wins", []string{"inject", "--all", "hi"}, "", map[string]any{"inject._": queued},
			closing{0, "queued for all agents: key k\n", "", []string{`inject._ {"all":true,"content":"hi","key":"MADE"}`}}},
	})
	t.Setenv("HOOKFABRIC_SESSION", "s1")
	if got := s.run(nil, "", "inject", "hi"); got.Code != 2 || !strings.Contains(got.Stderr, "--agent and --session contradict each other") {
		t.Errorf("two variables that exclude each other: %+v", got)
	}
}

func TestPending(t *testing.T) {
	s := newCounter(t)
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
	s.hold(t, []saying{
		{"what waits is a table", []string{"pending"}, "", map[string]any{"pending._": waiting},
			closing{0, table, "", []string{"pending._ {}"}}},
		{"--json prints the answer", []string{"pending", "--json"}, "", map[string]any{"pending._": schema.PendingAnswer{Items: []schema.PendingItem{}}},
			closing{0, `{"items":[],"total":0}` + "\n", "", []string{"pending._ {}"}}},
		{"nothing that waits is an answer", []string{"pending"}, "", map[string]any{"pending._": schema.PendingAnswer{}},
			closing{0, "nothing waits; 'broker inject --agent A TEXT' says something to an agent\n", "", []string{"pending._ {}"}}},
		{"also for one agent", []string{"pending", "--agent", "a1"}, "", map[string]any{"pending.a1": schema.PendingAnswer{}},
			closing{0, "nothing waits for agent a1; 'broker inject --agent a1 TEXT' says something to an agent\n", "", []string{"pending.a1 {}"}}},
		{"of too many it is said how many", []string{"pending", "--limit", "1"}, "", map[string]any{"pending._": more},
			closing{0, "STATE   AGE    SOURCE  FOR           BYTES  EXPIRES  KEY\nleased  1h35m  human   agent agent1  120    never    a-agent1.operator.k-1\n\n" +
				"7 wait; the first 1 are listed, --limit 7 lists more\n", "", []string{`pending._ {"limit":1}`}}},
	})
}

func TestWithdraw(t *testing.T) {
	s := newCounter(t)
	is := func(state schema.ItemState, n int) map[string]any {
		return map[string]any{"withdraw._": schema.WithdrawAnswer{Key: "k", State: state, Delivered: n}}
	}
	asked := []string{`withdraw._ {"key":"k"}`}
	s.hold(t, []saying{
		{"what waits is withdrawn", []string{"withdraw", "k"}, "", is(schema.Withdrawn, 0), closing{0, "k is withdrawn\n", "", asked}},
		{"who had it is said", []string{"withdraw", "k"}, "", is(schema.Withdrawn, 3), closing{0, "k is withdrawn; 3 agents had got it before\n", "", asked}},
		{"what is on its way is not", []string{"withdraw", "k"}, "", is(schema.Leased, 0),
			closing{1, "", "broker: k is on its way to the agent; if nobody acknowledges it, it can be withdrawn half a minute later\n", asked}},
		{"what was delivered is not", []string{"withdraw", "--json", "k"}, "", is(schema.Delivered, 0),
			closing{1, `{"key":"k","state":"delivered"}` + "\n", "broker: k was delivered before; it can not be taken back\n", asked}},
		{"each of several is tried", []string{"withdraw", "k", "l"}, "", map[string]any{"withdraw._": &schema.ControlError{Code: schema.CodeNotFound, Message: "there is no such item"}},
			closing{1, "", "broker: there is no such item\nbroker: there is no such item\nbroker: 2 of 2 were not withdrawn\n", []string{`withdraw._ {"key":"k"}`, `withdraw._ {"key":"l"}`}}},
	})
}

func TestRound(t *testing.T) {
	s := newCounter(t)
	d := func(x time.Duration) *schema.Duration { v := schema.Duration(x); return &v }
	begun := schema.Round{Agent: "a", Start: 3, Initial: d(10 * time.Minute), Subsequent: d(5 * time.Minute), Grace: *d(2 * time.Minute)}
	later := begun
	later.Number, later.Elapsed, later.WrapUp = 1, *d(70 * time.Second), true
	blocked := later
	blocked.Warned, blocked.Since, blocked.Denials, blocked.Terminate = true, *d(3 * time.Minute), 10, true
	warned := later
	warned.Warned, warned.Since = true, *d(30 * time.Second)
	s.hold(t, []saying{
		{"a round begins", []string{"round", "start", "--agent", "a", "--initial", "10m", "--subsequent", "5m", "--grace", "2m", "--number", "0"}, "", map[string]any{"round.a": begun},
			closing{0, "round 0 of agent a begins: soft limit 10m, grace 2m\n", "", []string{`round.a {"action":"start","initial":"10m0s","subsequent":"5m0s","grace":"2m0s","number":0}`}}},
		{"what is not said is not sent", []string{"round", "start", "--agent", "a"}, "", map[string]any{"round.a": schema.Round{Grace: schema.DefaultGrace}},
			closing{0, "round 0 of agent a begins: without a soft limit, grace 2m\n", "", []string{`round.a {"action":"start"}`}}},
		{"a limit of nothing is a limit", []string{"round", "start", "--agent", "a", "--initial", "0s"}, "", map[string]any{"round.a": schema.Round{Initial: d(0), Grace: schema.DefaultGrace}},
			closing{0, "round 0 of agent a begins: soft limit 0s, grace 2m\n", "", []string{`round.a {"action":"start","initial":"0s"}`}}},
		{"a round is shown", []string{"round", "show", "--agent", "a"}, "", map[string]any{"round.a": later},
			closing{0, "round 1 of agent a: 1m10s old, soft limit 5m, grace 2m, to be wrapped up\n", "", []string{`round.a {"action":"show"}`}}},
		{"with what is left of the grace", []string{"round", "show", "--agent", "a"}, "", map[string]any{"round.a": warned},
			closing{0, "round 1 of agent a: 1m10s old, soft limit 5m, grace 2m, warned 30s ago, 1m30s left\n", "", []string{`round.a {"action":"show"}`}}},
		{"and that it is over", []string{"round", "show", "--agent", "a"}, "", map[string]any{"round.a": blocked},
			closing{0, "round 1 of agent a: 1m10s old, soft limit 5m, grace 2m, warned 3m ago, only terminal tools pass, calls refused one after the other: 10, the run is to end\n", "", []string{`round.a {"action":"show"}`}}},
		{"an agent is asked to wrap up", []string{"round", "wrapup", "--agent", "a", "--grace", "30s"}, "", map[string]any{"round.a": later},
			closing{0, "agent a will be asked to come to an end: round 1, 1m10s old, soft limit 5m, grace 2m\n", "", []string{`round.a {"action":"wrapup","grace":"30s"}`}}},
		{"--json prints the round", []string{"round", "show", "--agent", "a", "--json"}, "", map[string]any{"round.a": begun},
			closing{0, `{"agent":"a","start":3,"number":0,"initial":"10m0s","subsequent":"5m0s","grace":"2m0s","elapsed":"0s"}` + "\n", "", []string{`round.a {"action":"show"}`}}},
	})
}

func TestAnswer(t *testing.T) {
	s := newCounter(t)
	receipt := schema.AnswerReceipt{Receipt: schema.Receipt{Key: "s-s1.x.k-agent2=2E1", Sequence: 9, State: schema.Queued}, Name: "agent2", Label: "agent2.1"}
	s.hold(t, []saying{
		{"an answer goes to the others", []string{"answer", "--session", "s1", "--agent", "bob", "--label", "agent2.1", "42"}, "", map[string]any{"answer.bob": receipt},
			closing{0, "agent2.1 goes to the other agents of session s1: key s-s1.x.k-agent2=2E1, sequence 9\n", "", []string{`answer.bob {"session":"s1","label":"agent2.1","content":"42"}`}}},
		{"--json prints the answer", []string{"answer", "--session", "s1", "--agent", "bob", "--json", "-"}, "42\n", map[string]any{"answer.bob": receipt},
			closing{0, `{"key":"s-s1.x.k-agent2=2E1","sequence":9,"state":"queued","name":"agent2","label":"agent2.1"}` + "\n", "", []string{`answer.bob {"session":"s1","content":"42"}`}}},
	})
}

// TestSayingsThatCanNotBeUnderstood end with exit code 2 and one sentence, and
// ask nobody.
func TestSayingsThatCanNotBeUnderstood(t *testing.T) {
	s := newCounter(t)
	for _, c := range []struct{ line, says string }{
		{"inject hi", "it is not said for whom; write --agent A, --session S or --all"},
		{"inject --agent a --all hi", "--agent and --all contradict each other; write one of them"},
		{"inject --agent a --session s --all hi", "--agent and --session and --all contradict each other"},
		{"inject --agent a", "the text is missing; write it in quotes, or - for stdin"},
		{"inject --agent a EMPTY", "the text is empty"},
		{"inject --agent a two words", `there are 2 texts; put what belongs together in quotes: "two words"`},
		{"inject --agent a --subagent {} hi", "there is a text and a result as JSON; write one of them"},
		{"inject --agent a --subagent {} --background {}", "--subagent and --background contradict each other"},
		{"inject --agent a --subagent nonsense", "--subagent can not be read"},
		{"inject --agent a --background []", "--background can not be read"},
		{"inject --agent a --strategy tool_reslt hi", `unknown strategy "tool_reslt"; did you mean tool_result?`},
		{"inject --agent a --strategy UserMessage hi", `did you mean user_message?`},
		{"inject --agent a --strategy shout hi", `unknown strategy "shout"; write tool_result or user_message`},
		{"inject --agent a --ttl -5s hi", "--ttl is -5s; it must be longer than nothing"},
		{"inject --agent a --ttl soon hi", "--ttl"},
		{"inject --agent a --number 7 hi", "write --producer too"},
		{"inject --agent a --producer p --number 0 hi", "--number is 0; count from 1"},
		{"inject --agent a --producer p --number 1 --key k hi", "--key and --number contradict each other"},
		{"inject --agent a --late-joiners hi", "--late-joiners says nothing with --agent"},
		{"inject --agent a --timeout 0s hi", "--timeout is 0s; it must be longer than nothing"},
		{"answer --agent a hi", "write --session S"},
		{"answer --session s hi", "write --agent A"},
		{"answer --session s --agent a", "the text is missing"},
		{"answer --session s --agent a two words", "put what belongs together in quotes"},
		{"pending extra", `unknown argument "extra"`},
		{"pending --limit -1", "--limit is -1"},
		{"pending --limit 10001", "--limit is 10001; write how many lines you want, at most 10000"},
		{"withdraw", "withdraw takes keys; 'broker pending' shows them"},
		{"round frobnicate", `unknown argument "frobnicate"`},
		{"round start", "write --agent A"},
		{"round start --agent a --initial -1s", "--initial is -1s; it can not be less than nothing"},
		{"round start --agent a --grace x", "--grace"},
		{"round start --agent a --number -1", "--number is -1; rounds count from 0"},
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

func TestNobodyAnswersASaying(t *testing.T) {
	server := bustest.StartWith(t, embedded.Options{Listen: "127.0.0.1:0"})
	silent := bustest.Connect(t, server, "silent")
	if _, err := silent.Subscribe("hook.v1.ctl.*.silent", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := silent.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	s := &counter{t: t}
	t.Setenv("HOOKFABRIC_NATS", server.ClientURL())
	for _, c := range []struct {
		name, line string
		says, not  string
	}{
		{"what nobody received is not in doubt", "inject --agent a hi", "no broker answers at", "not known"},
		{"what was not answered is", "inject --agent silent --timeout 50ms hi", "it is not known whether it was accepted: say it again with --key ", "pending"},
		{"with a key it may be said again", "inject --agent silent --timeout 50ms --key k hi", "say it again as it was, and it is accepted once", "pending"},
		{"an answer, too", "answer --agent silent --session s --timeout 50ms hi", "it is not known whether the answer was accepted: 'broker pending' tells", "say it again"},
		{"with its label it may be said again", "answer --agent silent --session s --label agent1.1 --timeout 50ms hi", "say it again with its label", "pending"},
		{"the time is what was said", "pending --agent silent --timeout 50ms", "nothing came within 50ms", "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := s.run(nil, "", strings.Fields(c.line)...)
			if got.Code != 1 || !strings.Contains(got.Stderr, c.says) || strings.Contains(got.Stderr, c.not) {
				t.Errorf("%+v; want %q", got, c.says)
			}
		})
	}
}

func TestStatusSaysWhatWaits(t *testing.T) {
	s := newCounter(t)
	st := schema.FabricStatus{Fabric: "f", Ready: true, Pending: map[string]int{"peer": 2, "human": 1, "other": 0},
		OldestPending: schema.Duration(90 * time.Minute), BlockedRounds: 3}
	for i := range 12 {
		st.Limited = append(st.Limited, schema.LimitedStatus{Name: "claude 1", Limit: "calls", Refused: 12 - i, Since: schema.Duration(90 * time.Second)})
	}
	got := s.run(map[string]any{"status._": st}, "", "status")
	const want = "calls    0 under way\npending  3: human 1, peer 2; oldest 1h30m\nrounds   3 over: only tools that end them pass\n" +
		"LIMITED  \"claude 1\" asks for too many calls under way: 12 refused since 1m30s ago, the last 0s ago\n"
	if got.Code != 0 || !strings.Contains(got.Stdout, want) || strings.Count(got.Stdout, "LIMITED") != 11 || !strings.Contains(got.Stdout, "LIMITED  2 more; --json lists them\n") {
		t.Errorf("%+v", got)
	}
	got = s.run(map[string]any{"status._": schema.FabricStatus{Pending: map[string]int{"human": 0}}}, "", "status")
	if strings.Contains(got.Stdout, "pending") || strings.Contains(got.Stdout, "rounds") || strings.Contains(got.Stdout, "LIMITED") {
		t.Errorf("%+v", got)
	}
}

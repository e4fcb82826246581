package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// The moments of the toy runtime, which accepts no injections before a tool.
var (
	before = dialect.Moment{Name: "before", Event: schema.PreToolUse, Can: map[dialect.Ability]dialect.How{
		dialect.Deny: dialect.Native, dialect.Inject: dialect.Emulated}}
	after = dialect.Moment{Name: "after", Event: schema.PostToolUse, Longest: 3000,
		Can: map[dialect.Ability]dialect.How{dialect.Inject: dialect.Native}}
	notice = dialect.Moment{Name: "notice"}
)

// toy is a runtime whose dialect panics if its payload, or the verdict, asks for it.
type toy struct{}

func (toy) Moments() []dialect.Moment { return []dialect.Moment{before, after, notice} }

func (toy) Decode(in dialect.Input) (*dialect.Call, error) {
	c := &dialect.Call{Moment: in.Moment, Event: schema.Event{HookType: in.Moment.Event}}
	switch string(in.Payload) {
	case "panic":
		panic("decode")
	case "":
		return c, errors.New("it is empty")
	}
	c.Event.ToolName, c.Event.SessionID, c.Pair = string(in.Payload), "s1", "pair-"+string(in.Payload)
	return c, nil
}

func (toy) Encode(c *dialect.Call, v *schema.Verdict) (dialect.Answer, error) {
	switch v.Reason {
	case "panic":
		panic("encode")
	case "fault":
		return dialect.Answer{}, errors.New("no bytes for it")
	}
	var told []string
	for _, in := range v.Injections {
		told = append(told, in.Content)
	}
	return dialect.Answer{Stdout: fmt.Appendf(nil, "%s %s [%s]", v.Decision, v.Reason, strings.Join(told, "|"))}, nil
}

func (toy) Refuse(_ dialect.Moment, reason string) dialect.Answer {
	return dialect.Answer{Stderr: "refused: " + reason, Exit: 2}
}

// asked is an asker that returns v and records its questions.
type asked struct {
	v     schema.Verdict
	panic bool
	all   []decide.Question
}

func (a *asked) Ask(_ context.Context, q decide.Question) decide.Judgement {
	copied := q
	event := *q.Event
	copied.Event = &event
	a.all = append(a.all, copied)
	if a.panic {
		panic("ask")
	}
	v := a.v
	return decide.Judgement{Verdict: &v}
}

func exchanging(m dialect.Moment, a *asked) (*Exchange, *bytes.Buffer) {
	var stderr bytes.Buffer
	return &Exchange{Settings: Settings{Runtime: "toy", Dialect: toy{}, Moment: m, Unreachable: decide.UnreachableAllow}, Asker: a, Stderr: &stderr}, &stderr
}

// After any failure in the shim, a deny stays a deny, a call that the fabric cannot judge follows the
// policy, and there is always an answer.
func TestAShimThatBreaksAnswersAllTheSame(t *testing.T) {
	deny := func(reason string) schema.Verdict { return schema.Verdict{Decision: schema.Deny, Reason: reason} }
	for name, c := range map[string]struct {
		payload, unreachable string
		asker                asked
		want                 string
		exit                 int
	}{
		"nothing breaks": {payload: "Bash", asker: asked{v: deny("no")}, want: "deny no []"},
		"decoding panics: it is judged as unreadable":        {payload: "panic", asker: asked{v: deny("guarded")}, want: "deny guarded []"},
		"decoding panics and it is not guarded":              {payload: "panic", want: "  []"},
		"encoding a deny panics":                             {payload: "Bash", asker: asked{v: deny("panic")}, exit: 2},
		"encoding a deny fails":                              {payload: "Bash", asker: asked{v: deny("fault")}, exit: 2},
		"encoding an allow fails":                            {payload: "Bash", asker: asked{v: schema.Verdict{Reason: "fault"}}, want: "  []"},
		"encoding an allow fails, closed":                    {payload: "Bash", unreachable: "deny", asker: asked{v: schema.Verdict{Reason: "fault"}}, exit: 2},
		"asking panics, open":                                {payload: "Bash", asker: asked{panic: true}, want: "  []"},
		"asking panics, closed":                              {payload: "Bash", unreachable: "deny", asker: asked{panic: true}, exit: 2},
		"encoding panics with what is no refusal, then asks": {payload: "Bash", asker: asked{v: schema.Verdict{Reason: "panic"}}, unreachable: "deny", exit: 2},
	} {
		t.Run(name, func(t *testing.T) {
			x, stderr := exchanging(before, &c.asker)
			if c.unreachable != "" {
				x.Unreachable = c.unreachable
			}
			r := x.Run(t.Context(), []byte(c.payload), nil)
			if string(r.Stdout) != c.want || r.Exit != c.exit || r.Exit == 2 && r.Stderr == "" {
				t.Errorf("%q, exit code %d, %q; want %q and %d", r.Stdout, r.Exit, r.Answer.Stderr, c.want, c.exit)
			}
			if c.want != "deny no []" && stderr.Len() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

func TestAMomentThatIsNobodysIsNotAskedAbout(t *testing.T) {
	a := &asked{v: schema.Verdict{Decision: schema.Deny}}
	x, _ := exchanging(notice, a)
	if r := x.Run(t.Context(), []byte("x"), nil); string(r.Stdout) != "  []" || len(a.all) > 0 {
		t.Errorf("%q after %d questions", r.Stdout, len(a.all))
	}
}

func TestWhatCanNotBeToldBeforeAToolIsToldAfterIt(t *testing.T) {
	store := shimstate.Folder(t.TempDir())
	a := &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: "careful"}}}}
	run := func(m dialect.Moment, tool string) Reply {
		x, stderr := exchanging(m, a)
		x.Store = store
		r := x.Run(t.Context(), []byte(tool), nil)
		if stderr.Len() > 0 {
			t.Error(stderr)
		}
		return r
	}
	if r := run(before, "Bash"); string(r.Stdout) != "  []" || !a.all[0].Event.Mute {
		t.Errorf("%q, mute %t", r.Stdout, a.all[0].Event.Mute)
	}
	a.v = schema.Verdict{Injections: []schema.Injection{{Content: "done"}}}
	if r := run(after, "Read"); string(r.Stdout) != "  [done]" {
		t.Errorf("after another call: %q", r.Stdout)
	}
	if r := run(after, "Bash"); string(r.Stdout) != "  [careful|done]" || a.all[2].Event.Mute {
		t.Errorf("after the call: %q", r.Stdout)
	}
	r := run(after, "Bash")
	if string(r.Stdout) != "  [careful|done]" {
		t.Errorf("what the runtime never got is told again, not %q", r.Stdout)
	}
	r.Told()
	if r := run(after, "Bash"); string(r.Stdout) != "  [done]" {
		t.Errorf("what was told comes again: %q", r.Stdout)
	}
}

// A denied call has no moment after it, and the shim cannot match the moment after a rewritten call by
// its input. The agent gets the text at its next moment instead.
func TestWhatHasNoMomentAfterItIsToldAtTheNextOne(t *testing.T) {
	careful := []schema.Injection{{Content: "careful"}}
	for name, v := range map[string]schema.Verdict{
		"a refused call":   {Decision: schema.Deny, Reason: "no", Injections: careful},
		"a rewritten call": {UpdatedInput: []byte(`{"command":"ls"}`), Injections: careful},
	} {
		t.Run(name, func(t *testing.T) {
			store, a := shimstate.Folder(t.TempDir()), &asked{v: v}
			moment := before
			moment.Can = map[dialect.Ability]dialect.How{dialect.Deny: dialect.Native, dialect.Rewrite: dialect.Native, dialect.Inject: dialect.Emulated}
			x, _ := exchanging(moment, a)
			x.Store = store
			x.Run(t.Context(), []byte("Bash"), nil)
			a.v = schema.Verdict{}
			x, _ = exchanging(after, a)
			x.Store = store
			if r := x.Run(t.Context(), []byte("Read"), nil); string(r.Stdout) != "  [careful]" {
				t.Errorf("after the next call: %q", r.Stdout)
			}
		})
	}
}

func TestWhatCanNotBeKeptIsSaid(t *testing.T) {
	a := &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: "careful"}}}}
	x, stderr := exchanging(before, a)
	x.Run(t.Context(), []byte("Bash"), nil)
	if !strings.Contains(stderr.String(), "dropped the injections") {
		t.Errorf("%q", stderr)
	}
}

// A runtime that cuts texts off never gets one that is too long. The agent gets the beginning, and a
// file with the whole text.
func TestLongTextsAreInAFile(t *testing.T) {
	long := strings.Repeat("é text ", 1000)
	a := &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: long}, {Content: "and this"}}}}
	x, stderr := exchanging(after, a)
	x.Workspaces = t.TempDir()
	r := x.Run(t.Context(), []byte("Bash"), nil)
	if len(r.Stdout) > after.Longest || stderr.Len() > 0 {
		t.Errorf("%d bytes, %s", len(r.Stdout), stderr)
	}
	files, err := filepath.Glob(filepath.Join(x.Workspaces, "temp_workspaces", "*"))
	if err != nil || len(files) != 1 || !strings.Contains(string(r.Stdout), files[0]) {
		t.Fatalf("%v, %v: %s", files, err, r.Stdout)
	}
	text, err := os.ReadFile(files[0])
	if d := cmp.Diff(long+"\n\nand this", string(text)); d != "" || err != nil {
		t.Error(d, err)
	}
	if again := x.Run(t.Context(), []byte("Bash"), nil); !bytes.Equal(again.Stdout, r.Stdout) {
		t.Errorf("the same text is said otherwise: %s", again.Stdout)
	}
}

// If a repository has a link in place of the folder, the shim writes nothing there.
func TestALongTextFollowsNoLinkOfAFolder(t *testing.T) {
	long, out := strings.Repeat("x", 5000), t.TempDir()
	x, stderr := exchanging(after, &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: long}}}})
	x.Workspaces = t.TempDir()
	if err := os.Symlink(out, filepath.Join(x.Workspaces, "temp_workspaces")); err != nil {
		t.Fatal(err)
	}
	if r := x.Run(t.Context(), []byte("Bash"), nil); !strings.Contains(string(r.Stdout), long) || !strings.Contains(stderr.String(), "is no folder") {
		t.Errorf("%d bytes, %q", len(r.Stdout), stderr)
	}
	if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
		t.Errorf("%v was written, %v", files, err)
	}
}

func TestALongTextWithoutAFolderIsGivenAsItIs(t *testing.T) {
	long := strings.Repeat("x", 5000)
	x, stderr := exchanging(after, &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: long}}}})
	if r := x.Run(t.Context(), []byte("Bash"), nil); !strings.Contains(string(r.Stdout), long) || !strings.Contains(stderr.String(), "--workspaces") {
		t.Errorf("%d bytes, %q", len(r.Stdout), stderr)
	}
}

func TestAnAgentIsNamedByWhoeverKnows(t *testing.T) {
	for name, c := range map[string]struct{ agent, payload, want string }{
		"the command line says it":     {agent: "alice", payload: "Bash", want: "alice"},
		"the session":                  {payload: "Bash", want: "toy-s1"},
		"nobody, and it is unreadable": {want: schema.UnknownAgent},
		"a name that cannot be sent":   {agent: strings.Repeat("a", 200), payload: "Bash", want: schema.UnknownAgent},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{}
			x, _ := exchanging(before, a)
			x.Agent = c.agent
			x.Run(t.Context(), []byte(c.payload), nil)
			if got := a.all[0].Event.AgentID; got != c.want {
				t.Errorf("it is %q's, not %q's", c.want, got)
			}
		})
	}
}

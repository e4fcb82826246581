package fabric_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
)

// team is the session of all loops.
const team = "session 1"

// loop is an agent's tool loop with a client of its own: it says that it handed
// over what it read.
type loop struct {
	f       *fabric
	id      string
	session string // empty: team
	dir     string // where workspaces of others are unpacked
	client  *client.Client
	// read has the injections that the agent received, in order.
	read []schema.Injection
	// restarts and ends are the restarts and terminates of its verdicts.
	restarts []*schema.Restart
	ends     []*schema.Terminate
}

// loop starts an agent's loop, which the fabric has seen when it returns.
func (f *fabric) loop(id string) *loop {
	f.t.Helper()
	l := &loop{f: f, id: id, dir: f.t.TempDir()}
	l.restart()
	l.ask(&schema.Event{HookType: schema.SessionStart})
	return l
}

// restart is another process for the same agent, which remembers nothing.
func (l *loop) restart() {
	l.f.t.Helper()
	if l.client != nil {
		l.client.Close()
	}
	var err error
	l.client, err = client.Connect(l.f.t.Context(), client.Options{
		InProcess: l.f.broker, Timeout: 5 * time.Minute, Workspaces: l.dir, Logger: slog.New(l.f.log),
	})
	if err != nil {
		l.f.t.Fatal(err)
	}
	l.f.t.Cleanup(l.client.Close)
}

// ask asks about an event of the agent. A mistake of the fabric is a deny here.
func (l *loop) ask(e *schema.Event) *schema.Verdict {
	l.f.t.Helper()
	e.AgentID, e.SessionID, e.EventID = l.id, cmp.Or(l.session, team), cmp.Or(e.EventID, uuid.Must(uuid.NewV7()).String())
	v, err := l.client.Ask(l.f.t.Context(), e)
	if err != nil {
		l.f.t.Errorf("%s asks about %s: %v\n%s", l.id, e.HookType, err, l.f.log)
		return &schema.Verdict{Decision: schema.Deny, Reason: err.Error()}
	}
	return v
}

// try is the model's wish to use a tool.
func (l *loop) try(tool string) *schema.Verdict {
	l.f.t.Helper()
	return l.ask(&schema.Event{HookType: schema.PreToolUse, ToolName: tool, ToolInput: jsontext.Value(`{}`)})
}

// ran asks about a tool that has run, without reading what comes of it.
func (l *loop) ran(tool, output string) *schema.Verdict {
	l.f.t.Helper()
	return l.ask(&schema.Event{HookType: schema.PostToolUse, ToolName: tool, ToolInput: jsontext.Value(`{}`), ToolOutput: jsontext.Value(output)})
}

// hear reads the items in a verdict, and acknowledges them.
func (l *loop) hear(v *schema.Verdict) {
	l.read = append(l.read, v.Injections...)
	if v.Restart != nil {
		l.restarts = append(l.restarts, v.Restart)
	}
	if v.Terminate != nil {
		l.ends = append(l.ends, v.Terminate)
	}
	l.client.Handed(v.EventID)
}

// use makes a whole tool call. It reports whether the tool ran, and returns the injections.
func (l *loop) use(tool string) (ran bool, told []schema.Injection) {
	l.f.t.Helper()
	before := len(l.read)
	v := l.try(tool)
	l.hear(v)
	if v.Decision != schema.Continue && v.Decision != schema.Allow {
		return false, l.read[before:]
	}
	l.hear(l.ran(tool, `"done"`))
	return true, l.read[before:]
}

// works uses a tool that must run, and returns the texts that the agent received.
func (l *loop) works(tool string) string {
	l.f.t.Helper()
	ran, told := l.use(tool)
	if !ran {
		l.f.t.Errorf("%s could not use %s\n%s", l.id, tool, l.f.log)
	}
	return texts(told)
}

func texts(told []schema.Injection) string {
	var all []string
	for _, in := range told {
		all = append(all, in.Content)
	}
	return strings.Join(all, "\n")
}

// sequences returns the sequences of all items that the agent received, with repetitions.
func (l *loop) sequences() (all []uint64) {
	for i := range l.read {
		all = append(all, l.read[i].Items()...)
	}
	return all
}

// inject puts something into the queue. For all: no agent.
func (f *fabric) inject(agent string, req *schema.InjectRequest) schema.Receipt {
	f.t.Helper()
	receipt, failed := control[schema.Receipt](f, schema.VerbInject, agent, req)
	if failed != nil {
		f.t.Fatalf("inject: %+v\n%s", failed, f.log)
	}
	f.settle()
	return receipt
}

// settle waits until all mirrors have the accepted items.
func (f *fabric) settle() {
	<-time.After(100 * time.Millisecond)
	synctest.Wait()
}

// must makes a control request that must not be refused.
func must[A any](f *fabric, verb, agent string, request any) A {
	f.t.Helper()
	answer, failed := control[A](f, verb, agent, request)
	if failed != nil {
		f.t.Fatalf("%s of %s: %+v\n%s", verb, agent, failed, f.log)
	}
	f.settle()
	return answer
}

// answers hands an agent's answer to the others, with a workspace of these files,
// by path; none: it shares none.
func (f *fabric) answers(agent, text string, files map[string]string) schema.AnswerReceipt {
	f.t.Helper()
	req := schema.AnswerRequest{Session: team, Content: text}
	if len(files) > 0 {
		req.Workspace = filepath.Join(f.t.TempDir(), "work")
		for name, content := range files {
			path := filepath.Join(req.Workspace, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				f.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				f.t.Fatal(err)
			}
		}
		req.Snapshot = f.pack(req.Workspace)
		req.Content = strings.ReplaceAll(text, "WORK", req.Workspace)
	}
	return must[schema.AnswerReceipt](f, schema.VerbAnswer, agent, req)
}

// pack stores a folder as an operator's program does.
func (f *fabric) pack(dir string) *schema.Object {
	f.t.Helper()
	nc := f.connect("operator")
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx := context.WithoutCancel(f.t.Context())
	store, err := objects.OpenExisting(ctx, js, objects.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	r, w := io.Pipe()
	go func() {
		_, err := snapshot.Pack(ctx, dir, w)
		w.CloseWithError(err)
	}()
	o, err := store.Put(ctx, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return &o
}

// holds checks that a text has parts, in their order.
func (f *fabric) holds(what, text string, parts ...string) {
	f.t.Helper()
	rest := text
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			f.t.Errorf("%s does not say %q in its place:\n%s", what, p, text)
			return
		}
		rest = after
	}
}

// lacks checks that a text has none of the parts.
func (f *fabric) lacks(what, text string, parts ...string) {
	f.t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			f.t.Errorf("%s says %q:\n%s", what, p, text)
		}
	}
}

// onceEach checks that items came once each, in order.
func (f *fabric) onceEach(who string, got, want []uint64) {
	f.t.Helper()
	if !slices.Equal(got, want) {
		f.t.Errorf("%s was told the items %s, not %s", who, fmt.Sprint(got), fmt.Sprint(want))
	}
}

package decide_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// world is a fabric for the shims of one state folder.
type world struct {
	*bustest.Fabric

	t      *testing.T
	server *server.Server
	state  string
	nc     *nats.Conn
}

// within runs a test in a bubble, with a fabric of version 7. Its hooks guard Bash, and the event PostToolUse.
func within(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, server: bustest.Start(t), state: t.TempDir()}
		w.begin("f-1", 1)
		test(w)
		bustest.Settle()
	})
}

// begin starts another fabric, whose key is made of the given byte.
func (w *world) begin(id string, key byte) {
	w.Fabric = bustest.NewFabric(id)
	w.Version, w.Guards, w.Signer = 7, []schema.PolicyHook{guarding("Bash"), {Hook: "after", Event: schema.PostToolUse, Guards: true}}, bustest.Signer(key)
	w.back()
}

func guarding(tool string) schema.PolicyHook {
	return schema.PolicyHook{Hook: "guards-" + tool, Event: schema.PreToolUse, Matcher: tool, Guards: true}
}

// gone disconnects the fabric until back. It returns when the server has closed the connection: before that,
// the server could still send it events, which would be lost.
func (w *world) gone() {
	w.nc.Close()
	synctest.Wait()
}

func (w *world) back() {
	w.t.Helper()
	w.nc = bustest.Connect(w.t, w.server, "fabric")
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := w.Serve(ctx, w.nc); err != nil {
		w.t.Fatal(err)
	}
}

// becomes changes the active version and its guards.
func (w *world) becomes(version uint64, guards ...schema.PolicyHook) {
	w.Lock()
	defer w.Unlock()
	w.Version, w.Guards = version, guards
}

// said collects the messages of a judge.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (w *world) link(to *said) decide.Link {
	return decide.Link{URL: "nats://there", Name: "shim", State: w.state, Stderr: to, InProcess: w.server}
}

// calls returns a question about a tool.
func calls(tool string) decide.Question {
	return decide.Question{
		Event:       &schema.Event{HookType: schema.PreToolUse, AgentID: "a", SessionID: "s", ToolName: tool},
		Unreachable: decide.UnreachableAllow,
	}
}

// asks runs one shim, from its question to its end.
func (w *world) asks(q decide.Question) (decide.Judgement, string) {
	w.t.Helper()
	var to said
	j := decide.New(w.link(&to))
	defer j.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	got := j.Ask(ctx, q)
	j.Handed(ctx, got.Verdict, 100*time.Millisecond)
	j.Learn(ctx, time.Minute)
	return got, to.String()
}

// wants asks about a tool, and compares the decision and a part of the message.
func (w *world) wants(tool string, d schema.Decision, says string) decide.Judgement {
	w.t.Helper()
	got, said := w.asks(calls(tool))
	if decision := got.Verdict.Decision; decision != d && !(d == schema.None && decision == schema.Continue) {
		w.t.Errorf("%s: %q, want %q: %+v", tool, decision, d, got.Verdict)
	}
	if says == "" && said != "" || !strings.Contains(said, says) {
		w.t.Errorf("%s: it said %q, want %q", tool, said, says)
	}
	return got
}

// file returns the path of the one file with that name in the state folder.
func (w *world) file(name string) string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.state, "shim", name))
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%s: %v, %v", name, all, err)
	}
	return all[0]
}

func (w *world) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) write(path, content string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

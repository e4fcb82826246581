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
	"github.com/hookfabric/hookfabric/bus/client/clienttest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// world is a fabric that shims of one state folder can reach.
type world struct {
	*clienttest.Fabric

	t      *testing.T
	server *server.Server
	state  string
	nc     *nats.Conn
}

// within has a test run where no time passes, with a fabric of version 7 whose
// hook guards Bash, and one of PostToolUse as well.
func within(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, server: bustest.Start(t), state: t.TempDir()}
		w.begin("f-1", 1)
		test(w)
		bustest.Settle()
	})
}

// begin begins another fabric, whose key is made of that byte.
func (w *world) begin(id string, key byte) {
	w.Fabric = clienttest.New(id)
	w.Version, w.Guards, w.Signer = 7, []schema.PolicyHook{guarding("Bash"), {Hook: "after", Event: schema.PostToolUse, Guards: true}}, clienttest.Signer(key)
	w.back()
}

func guarding(tool string) schema.PolicyHook {
	return schema.PolicyHook{Hook: "guards-" + tool, Event: schema.PreToolUse, Matcher: tool, Guards: true}
}

// gone ends the fabric until back. It returns when the server has dropped the connection
// too: until then the server may still hand it events, which are lost.
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

// becomes makes another version active.
func (w *world) becomes(version uint64, guards ...schema.PolicyHook) {
	w.Lock()
	defer w.Unlock()
	w.Version, w.Guards = version, guards
}

// said is what a judge says to people.
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

// calls is a question about a tool.
func calls(tool string) decide.Question {
	return decide.Question{
		Event:       &schema.Event{HookType: schema.PreToolUse, AgentID: "a", SessionID: "s", ToolName: tool},
		Unreachable: decide.UnreachableAllow,
	}
}

// asks is one shim, from its question to its end.
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

// wants asks about a tool, and compares the decision and a part of what is said.
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

// file is the one file of that name in the state folder.
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

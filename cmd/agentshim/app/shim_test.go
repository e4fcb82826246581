package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// The variables that make a process of this test a shim.
const (
	natsVar  = "SHIM_TEST_NATS"
	stateVar = "SHIM_TEST_STATE"
	stepVar  = "SHIM_TEST_DIES_AT"
	// programVar makes it the whole program, in an environment without variables of
	// agentshim.
	programVar = "SHIM_TEST_PROGRAM"
)

func TestMain(m *testing.M) {
	if os.Getenv(realVar) != "" || os.Getenv(programVar) != "" {
		os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv(natsVar) != "" {
		h := newHook(os.Getenv(natsVar), os.Getenv(stateVar))
		h.stdin, h.stdout, h.stderr = os.Stdin, os.Stdout, os.Stderr
		if os.Getenv(stepVar) == halfWritten {
			h.stdout = halfWriter{}
		}
		h.step = dieAt
		os.Exit(h.run(context.Background()))
	}
	bustest.Main(m)
}

// halfWritten is the step at which half of the answer is written.
const halfWritten = "half written"

// halfWriter writes half of an answer, and dies.
type halfWriter struct{}

func (halfWriter) Write(b []byte) (int, error) {
	_, _ = os.Stdout.Write(b[:len(b)/2])
	dieAt(halfWritten)
	return 0, errors.New("unreachable")
}

// dieAt ends the process as kill -9 does.
func dieAt(step string) {
	if step == os.Getenv(stepVar) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func newHook(url, state string) *hook {
	generic, err := dialect.For("generic")
	if err != nil {
		panic(err)
	}
	h := &hook{timeout: 20 * time.Second}
	h.Runtime, h.Unreachable, h.Dialect = "generic", decide.UnreachableAllow, generic
	h.nats, h.state = url, state
	return h
}

// world is a fabric that shims can reach.
type world struct {
	*bustest.Fabric

	t     *testing.T
	url   string
	state string
	ids   []string // the ids of the events, if a test records them; the fabric's lock guards it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	w := &world{Fabric: bustest.NewFabric("f-test"), t: t, url: s.ClientURL(), state: t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.Serve(ctx, bustest.Connect(t, s, "fabric")); err != nil {
		t.Fatal(err)
	}
	return w
}

const payload = `{"hook_type":"PostToolUse","agent_id":"a","tool_name":"Read"}`

// shim runs one shim in this process.
func (w *world) shim(event string, stdout io.Writer) (code int, stderr string) {
	var said bytes.Buffer
	h := newHook(w.url, w.state)
	h.stdin, h.stdout, h.stderr = strings.NewReader(event), stdout, &said
	return h.run(w.t.Context()), said.String()
}

// says runs a shim and returns the verdict that the agent gets.
func (w *world) says(event string) *schema.Verdict {
	w.t.Helper()
	var stdout bytes.Buffer
	code, stderr := w.shim(event, &stdout)
	if code != 0 || stderr != "" {
		w.t.Fatalf("exit code %d, %s", code, stderr)
	}
	return w.read(stdout.Bytes())
}

func (w *world) read(stdout []byte) *schema.Verdict {
	w.t.Helper()
	v := &schema.Verdict{}
	if err := schema.Unmarshal(stdout, v); err != nil {
		w.t.Fatalf("%s: %v", stdout, err)
	}
	return v
}

// process runs one shim as a process, which may die at a step.
func (w *world) process(step string) (stdout []byte, died bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), natsVar+"="+w.url, stateVar+"="+w.state, stepVar+"="+step)
	c.Stdin = strings.NewReader(payload)
	stdout, err := c.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		w.t.Fatal(err)
	}
	return stdout, err != nil
}

// endLeases makes the fabric send unacknowledged items again.
func (w *world) endLeases() {
	w.Lock()
	defer w.Unlock()
	clear(w.Leases)
}

// waiting counts the items that no shim has acknowledged.
func (w *world) waiting() int {
	w.Lock()
	defer w.Unlock()
	return len(w.Items)
}

// last returns the last question.
func (w *world) last() bus.EventRequest {
	w.Lock()
	defer w.Unlock()
	return w.Asked[len(w.Asked)-1]
}

// The shim asks about an agent whose name no subject can contain as about an unknown agent:
// the fabric, not the shim, knows whether the call is guarded.
func TestAnAgentWhoseNameCanNotBeSentIsAskedAbout(t *testing.T) {
	w := newWorld(t)
	for _, event := range []string{
		`{"hook_type":"PreToolUse","tool_name":"Bash","agent_id":"` + strings.Repeat("a", 200) + `"}`,
		`{"hook_type":"PreToolUse","tool_name":"Bash","session_id":"` + strings.Repeat("s", 200) + `"}`,
	} {
		code, stderr := w.shim(event, io.Discard)
		w.Lock()
		asked := len(w.Asked)
		w.Unlock()
		if asked == 0 {
			t.Fatalf("nobody was asked about %s: exit code %d, %s", event, code, stderr)
		}
		if q := w.last(); code != 1 || q.Agent != schema.UnknownAgent || q.Tool != "Bash" || !strings.Contains(stderr, "128") {
			t.Errorf("exit code %d, %s: asked about %+v", code, stderr, q.Routing)
		}
		w.Lock()
		w.Asked = nil
		w.Unlock()
	}
}

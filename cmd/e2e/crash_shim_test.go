package e2e_test

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// The agent does not use the half-written answer of a killed shim. When the lease ends, the agent's next shim
// delivers all of it, once.
func TestAShimThatIsKilledHalfwayLosesNothing(t *testing.T) {
	if !long() {
		t.Skip("a lease lasts 30 s; set HOOKFABRIC_LONG")
	}
	b := startBroker(t)
	// More than a pipe holds, so that the shim cannot end before it is read.
	text := strings.Repeat("0123456789abcdef", 1<<14) + "the end"
	nc := connect(t, b.url)
	subject, err := bus.ControlSubject(schema.VerbInject, "a")
	if err != nil {
		t.Fatal(err)
	}
	data, err := schema.Marshal(&schema.InjectRequest{Content: text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.RequestWithContext(t.Context(), subject, data); err != nil {
		t.Fatal(err)
	}

	dead := shimCommand(t.Context(), b, t.TempDir())
	stdout, err := dead.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := dead.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait() // it was killed

	state := t.TempDir()
	times := 0
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for range 80 {
		<-tick.C
		out, err := shimCommand(t.Context(), b, state).Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "the end") {
			times++
		}
	}
	if times != 1 {
		t.Errorf("it came %d times", times)
	}
}

// shimCommand is a shim that asks after a tool of the agent "a" returned.
func shimCommand(ctx context.Context, b *brokerProcess, state string) *exec.Cmd {
	c := exec.CommandContext(ctx, "agentshim", "hook", "--runtime", "generic", "--nats", b.url, "--state", state)
	c.Stdin = strings.NewReader(`{"hook_type":"PostToolUse","agent_id":"a","tool_name":"Read"}`)
	return c
}

package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/internal/netns"
	"github.com/hookfabric/hookfabric/schema"
)

// networkVar says that the process has a network of its own, in which nothing else listens at the
// default URL.
const networkVar = "SHIM_TEST_NETWORK"

// inOwnNetwork runs the test or subtest in a process with a network of its own. It reports whether this is that
// process.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(networkVar) != "" {
		if err := netns.RaiseLoopback(); err != nil {
			t.Fatal(err)
		}
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v=true")
	c.Env = append(os.Environ(), networkVar+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	netns.Isolate(c)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); errors.Is(err, syscall.EPERM) {
		t.Skipf("THERE IS NO NETWORK NAMESPACE HERE, so that the default URL was NOT tested: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	return false
}

// A cell is one case of the matrix: a way to the fabric, its address, and what goes wrong.
type cell struct {
	*world
	listen string
	server *server.Server
	nc     *nats.Conn
	local  *exec.Cmd // the daemon; nil: hooks ask directly
	asked  chan struct{}
	flags  []string // more flags of the hook
}

func newCell(t *testing.T, way, address string) *cell {
	t.Helper()
	c := &cell{listen: "127.0.0.1:4222", asked: make(chan struct{}, 10)}
	if address == "other URL" {
		c.listen = "127.0.0.1:0"
	}
	c.server = bustest.StartWith(t, server.Options{Listen: c.listen})
	c.world = &world{Fabric: bustest.NewFabric("f-test"), t: t, url: c.server.ClientURL(), state: t.TempDir()}
	c.Version, c.Signer = 7, bustest.Signer(1)
	c.Guards = []schema.PolicyHook{{Hook: "guard", Event: schema.PreToolUse, Matcher: "Bash", Guards: true}}
	c.serve()
	if way == "daemon" {
		c.local = c.daemon()
	}
	return c
}

// serve makes the fabric answer.
func (c *cell) serve() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	c.nc = bustest.Connect(c.t, c.server, "fabric")
	if err := c.Serve(ctx, c.nc); err != nil {
		c.t.Fatal(err)
	}
}

// call runs a hook that finds its daemon. Without a daemon, the hook gets the fabric's URL
// if that is not the default one.
func (c *cell) call(tool string) (*schema.Verdict, string) {
	c.t.Helper()
	args := append([]string{"hook", "--runtime", "generic", "--timeout", "4s", "--state", c.state, "--socket", c.socket()}, c.flags...)
	hook := exec.Command(os.Args[0], args...)
	hook.Env = append(os.Environ(), programVar+"=1")
	if c.local == nil && !strings.HasSuffix(c.url, ":4222") {
		hook.Env = append(hook.Env, "HOOKFABRIC_NATS="+c.url)
	}
	var stderr bytes.Buffer
	hook.Stdin, hook.Stderr = strings.NewReader(`{"hook_type":"PreToolUse","agent_id":"a","tool_name":"`+tool+`","tool_input":{}}`), &stderr
	stdout, err := hook.Output()
	if err != nil {
		c.t.Fatalf("%s: %v: %s", tool, err, &stderr)
	}
	return c.read(stdout), stderr.String()
}

// wants makes a call, runs during while the call waits, and checks the decision.
func (c *cell) wants(tool string, want schema.Decision, during func()) {
	c.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if during != nil {
			<-c.asked
			during()
		}
	}()
	v, stderr := c.call(tool)
	<-done
	if v.Decision != want {
		c.t.Errorf("%s: %q, want %q: %s; %s", tool, v.Decision, want, v.Reason, stderr)
	}
}

// silence makes the fabric answer no more calls, and report each call to asked.
func (c *cell) silence() {
	c.Lock()
	defer c.Unlock()
	c.OnEvent = func(*nats.Msg, bus.EventRequest) bool {
		c.asked <- struct{}{}
		return true
	}
}

// down ends the server.
func (c *cell) down() {
	c.nc.Close()
	_ = c.server.Close(context.Background())
}

// For every fault during a call, every way to the fabric and every address, a call that a
// fail-closed hook guards is denied, and so are all calls of a frozen agent.
func TestOnePolicyAppliesOnEveryWay(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"daemon", "direct"} {
		for _, address := range []string{"default URL", "other URL"} {
			for fault, goWrong := range map[string]func(c *cell) (during func()){
				"dies": func(c *cell) func() {
					c.silence()
					return func() { c.kill(syscall.SIGKILL); c.down() }
				},
				"hangs": func(c *cell) func() {
					c.silence()
					return func() { c.kill(syscall.SIGSTOP) }
				},
				"broker gone": func(c *cell) func() { c.down(); return nil },
				"frozen": func(c *cell) func() {
					c.Lock()
					c.FreezeVersion, c.Freezes = 3, []schema.Freeze{{Agents: "a", Reason: "odd", By: "me", Since: time.Now().UTC()}}
					c.Unlock()
					c.wants("Read", schema.Continue, nil) // which announces the freeze; this fabric itself denies nothing
					c.eventually("the freeze is known", func() bool { return c.kept("odd") })
					c.silence()
					return func() { c.kill(syscall.SIGKILL); c.down() }
				},
			} {
				t.Run(way+"/"+address+"/"+fault, func(t *testing.T) {
					t.Parallel()
					if !inOwnNetwork(t) {
						return
					}
					c := newCell(t, way, address)
					c.wants("Read", schema.Continue, nil)
					during := goWrong(c)
					read := schema.Continue
					if fault == "frozen" {
						read = schema.Deny
					}
					c.wants("Bash", schema.Deny, during)
					if fault != "hangs" { // a second call would wait as long
						c.wants("Read", read, nil)
					}
				})
			}
		}
	}
}

// restart kills a daemon, starts another one whose URL holds a password, and kills that one
// too. The card must not contain the password.
func (c *cell) restart() {
	c.t.Helper()
	_ = c.local.Wait() // another daemon does not take its socket before it has ended
	c.url = strings.Replace(c.url, "nats://", "nats://user:secret@", 1)
	c.local = c.daemon()
	c.kill(syscall.SIGKILL)
	if card, err := (daemon.Place{State: c.state}).ReadCard(); err != nil || card.PID != c.local.Process.Pid || card.NATS != "" {
		c.t.Errorf("the card is %+v, %v", card, err)
	}
}

// kill sends a signal to the daemon, if one runs.
func (c *cell) kill(s syscall.Signal) {
	if c.local != nil {
		_ = c.local.Process.Signal(s)
	}
}

// kept reports whether the stored policy contains the word.
func (c *cell) kept(word string) bool {
	data, err := os.ReadFile(c.state + "/shim/f-test/policy")
	return err == nil && bytes.Contains(data, []byte(word))
}

// A daemon that fails a call affects only that call: the hook asks the daemon's fabric,
// which judges it.
func TestTheFabricOfADaemonThatFailsIsAsked(t *testing.T) { //nolint:tparallel // its cases use the default port one after the other
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	for name, signal := range map[string]syscall.Signal{"dies": syscall.SIGKILL, "hangs": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			other := newCell(t, "direct", "default URL") // which no hook uses
			defer other.down()
			c := newCell(t, "daemon", "other URL")
			c.wants("Read", schema.Continue, nil)
			c.silence()
			c.wants("Read", schema.Deny, func() {
				c.deny(func() bool { return true })
				c.kill(signal)
			})
		})
	}
}

// A killed daemon leaves its card behind. The hook asks the card's fabric first. It asks
// its own fabric if that one is gone too, or if the card does not apply to this hook. A
// managed hook ignores the card, because the agent could write it.
func TestTheCardOfADeadDaemonIsNotTheLastWord(t *testing.T) { //nolint:tparallel // its cases use the default port one after the other
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	for name, goWrong := range map[string]func(c *cell){
		"its fabric is gone":          func(c *cell) { c.down() },
		"the hook is managed":         func(c *cell) { c.flags = []string{"--managed"} },
		"the hook has another socket": func(c *cell) { c.flags = []string{"--socket", c.socket() + "2"} },
		"its URL holds a password":    (*cell).restart,
	} {
		t.Run(name, func(t *testing.T) {
			own := newCell(t, "direct", "default URL")
			defer own.down()
			own.deny(func() bool { return true })
			c := newCell(t, "daemon", "other URL")
			c.wants("Read", schema.Continue, nil)
			c.kill(syscall.SIGKILL)
			goWrong(c)
			c.wants("Read", schema.Deny, nil)
			c.wants("Bash", schema.Deny, nil)
		})
	}
}

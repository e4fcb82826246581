package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/schema"
)

// realVar makes a process of this test the whole program.
const realVar = "HOOKFABRIC_TEST_REAL" // a daemon that a hook starts gets it as well

// command returns a process of agentshim with the world's fabric and folders.
func (w *world) command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), realVar+"=1", "HOOKFABRIC_NATS="+w.url, "HOOKFABRIC_STATE="+w.state, "HOOKFABRIC_SOCKET="+w.socket(), "HOOKFABRIC_HTTP=127.0.0.1:0")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

func (w *world) socket() string { return filepath.Join(w.state, "d", "s") }

// daemon starts a daemon, and waits until it answers.
func (w *world) daemon(args ...string) *exec.Cmd {
	w.t.Helper()
	c := w.command(append([]string{"serve"}, args...)...)
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if w.t.Failed() {
			w.t.Logf("the daemon said: %s", &said)
		}
	})
	w.eventually("the daemon answers", func() bool { _, err := w.status(); return err == nil })
	return c
}

func (w *world) status() (daemon.Status, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	return daemon.Ask(ctx, w.socket())
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	bustest.Eventually(w.t, what, ok)
}

const guardedCall = `{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash","tool_input":{"command":"rm"}}`

// runs runs a hook as a process and returns the verdict that the agent gets.
func (w *world) runs(event string, args ...string) (*schema.Verdict, string, error) {
	c := w.command(append([]string{"hook", "--runtime", "generic", "--timeout", "15s"}, args...)...)
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader(event), &stderr
	stdout, err := c.Output()
	if err != nil {
		return nil, stderr.String(), err
	}
	return w.read(stdout), stderr.String(), nil
}

func TestAHookAsksTheDaemonThatIsThere(t *testing.T) {
	w := newWorld(t)
	d := w.daemon()
	w.Put(bustest.Item(1, "one"))
	v, stderr, err := w.runs(payload)
	if err != nil || stderr != "" || len(v.Injections) != 1 {
		t.Fatalf("%+v, %s, %v", v, stderr, err)
	}
	if st, err := w.status(); err != nil || st.Calls < 1 || st.NATS != w.url {
		t.Errorf("%+v, %v", st, err)
	}
	w.eventually("what it brought is acknowledged", func() bool { return w.waiting() == 0 })
	if card, err := (daemon.Place{State: w.state}).ReadCard(); err != nil || card.PID != d.Process.Pid || card.URL == "" {
		t.Errorf("%+v, %v", card, err)
	}
	calls, _ := w.status()
	if _, _, err := w.runs(payload, "--nats", w.url); err != nil {
		t.Error(err)
	}
	if now, _ := w.status(); now.Calls > calls.Calls+1 {
		t.Errorf("whoever names the bus asks the daemon: %d calls, then %d", calls.Calls, now.Calls)
	}
	again := w.command("serve")
	if out, err := again.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("another daemon")) {
		t.Errorf("a second daemon serves: %s", out)
	}
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	for _, left := range []string{w.socket(), filepath.Join(w.state, "daemon.json")} {
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
}

// A client that got no answer from a daemon asks the fabric with the same event id.
func TestAnEventHasTheIDThatItWasAskedUnderBefore(t *testing.T) {
	const id = "01990000-0000-7000-8000-000000000001"
	w := newWorld(t)
	for name, args := range map[string][]string{"the fabric": {"--nats", w.url}, "a daemon": nil} {
		if args == nil {
			w.daemon()
		}
		if _, stderr, err := w.runs(guardedCall, append(args, "--event-id", id)...); err != nil || w.last().ID != id {
			t.Errorf("%s is asked about %s: %s, %v", name, w.last().ID, stderr, err)
		}
	}
}

// A daemon may die at any time. The hook then asks the fabric about the same event, and a
// denial stays a denial.
func TestADaemonThatDiesWithACallInHandDecidesNothing(t *testing.T) {
	w := newWorld(t)
	d := w.daemon()
	var dead atomic.Bool
	w.deny(dead.Load) // while the daemon lives it waits for its answer
	var wait sync.WaitGroup
	wait.Go(func() {
		v, stderr, err := w.runs(guardedCall)
		if err != nil || v.Decision != schema.Deny || !strings.Contains(stderr, "this hook asks the fabric itself") {
			t.Errorf("%+v, %s, %v", v, stderr, err)
		}
	})
	ids := func() []string { w.Lock(); defer w.Unlock(); return slices.Clone(w.ids) }
	w.eventually("the daemon asks", func() bool { return len(ids()) > 0 })
	dead.Store(true) // earlier requests stay unanswered
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.Wait()
	wait.Wait()
	if all := slices.Compact(ids()); len(all) != 1 {
		t.Errorf("it became other events: %v", all)
	}
	if v, stderr, err := w.runs(guardedCall); err != nil || v.Decision != schema.Deny || stderr != "" {
		t.Errorf("what a dead daemon left: %+v, %s, %v", v, stderr, err)
	}
	w.daemon()
}

// deny denies every call while answer returns true. Other calls wait.
func (w *world) deny(answer func() bool) {
	w.Lock()
	defer w.Unlock()
	w.OnEvent = func(m *nats.Msg, q bus.EventRequest) bool {
		w.Lock()
		w.ids = append(w.ids, q.ID)
		w.Unlock()
		if answer() {
			bustest.Respond(m, &schema.Verdict{Decision: schema.Deny, Reason: "no", Fabric: "f-test"})
		}
		return true
	}
}

func TestManyHooksStartOneDaemon(t *testing.T) {
	w := newWorld(t)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if v, stderr, err := w.runs(payload, "--start"); err != nil || v.Decision != schema.Continue || stderr != "" {
				t.Errorf("%+v, %s, %v", v, stderr, err)
			}
		})
	}
	wait.Wait()
	var st daemon.Status
	w.eventually("a daemon answers", func() bool { var err error; st, err = w.status(); return err == nil })
	t.Cleanup(func() {
		_ = syscall.Kill(st.PID, syscall.SIGTERM)
		w.eventually("it has ended", func() bool { _, err := os.Stat(w.socket()); return err != nil })
	})
	log, err := os.ReadFile(filepath.Join(w.state, "daemon.log"))
	if err != nil || strings.Count(string(log), "socket=") != 1 {
		t.Errorf("%v: %s", err, log)
	}
	if sid, err := unix.Getsid(st.PID); err != nil || sid != st.PID {
		t.Errorf("it is in the session %d, %v", sid, err)
	}
	if _, _, err := w.runs(payload, "--start"); err != nil {
		t.Error(err)
	}
	if now, err := w.status(); err != nil || now.PID != st.PID || now.Calls <= st.Calls {
		t.Errorf("%+v, %v", now, err)
	}
}

func TestADaemonThatNobodyAsksEnds(t *testing.T) {
	w := newWorld(t)
	d := w.daemon("--idle", "300ms")
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
}

package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	agentshim "github.com/hookfabric/hookfabric/cmd/agentshim/app"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// DaemonConfig is what `agentshim serve` is to be started with.
type DaemonConfig struct {
	// NATS is the broker's server.
	NATS string `json:"nats"`
	// State is its folder, By this process.
	State string `json:"state"`
	By    string `json:"by"`
}

// saidIn is how long the daemon may take to hear that something was handed over.
const saidIn = time.Second

// socketIn and nameIn are where the daemon of a state folder listens, and says which process
// it is.
func socketIn(state string) string { return filepath.Join(state, "daemon.sock") }
func nameIn(state string) string   { return filepath.Join(state, "by") }

// startDaemon is `agentshim serve`, in a process of its own.
func startDaemon(ctx context.Context, c DaemonConfig) (*proc.Role, error) {
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(nameIn(c.State), []byte(c.By), 0o600); err != nil { // before it brings anything
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan int, 1)
	go func() {
		ended <- agentshim.Main(ctx, []string{"serve", "--nats", c.NATS, "--state", c.State, "--socket", socketIn(c.State), "--http", ""},
			strings.NewReader(""), os.Stderr, os.Stderr)
	}()
	return &proc.Role{Close: func() error {
		stop()
		if code := <-ended; code != 0 {
			return fmt.Errorf("the daemon ended with exit code %d", code)
		}
		return nil
	}}, nil
}

// daemonVerdict has the daemon get a verdict. One that no daemon, or nobody of the fabric,
// gave is none.
func (a *agent) daemonVerdict(ctx context.Context, e *schema.Event) (*schema.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	by, err := os.ReadFile(a.shim.name) // before it is asked: one that is killed meanwhile is excused
	if err != nil {
		return nil, err
	}
	j := a.d.Ask(ctx, daemon.Question{Event: e})
	if j.Unjudged == nil {
		a.by.Store(j.Verdict.EventID, string(by))
	}
	return j.Verdict, j.Unjudged
}

// hand hands over what the daemon brought, and tells it so: it acknowledges that.
func (a *agent) hand(v *schema.Verdict) error {
	by, _ := a.by.LoadAndDelete(v.EventID)
	name, _ := by.(string)
	if err := a.log.Hand(name, a.name, v); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), saidIn)
	defer cancel()
	a.d.Handed(ctx, v, saidIn)
	return nil
}

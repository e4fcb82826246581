package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A brokerProcess is a broker that is ready.
type brokerProcess struct {
	*process

	url  string // of the bus
	http string // of health checks and metrics
}

// anyPort are the flags that make a broker listen on free ports.
var anyPort = []string{"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}

// startBroker starts a broker on free ports and waits until it is ready.
func startBroker(t testing.TB, args ...string) *brokerProcess {
	t.Helper()
	return startBrokerWith(t, nil, args...)
}

// startBrokerWith is startBroker with variables of the environment.
func startBrokerWith(t testing.TB, env []string, args ...string) *brokerProcess {
	t.Helper()
	if !slices.Contains(args, "--data") && !slices.Contains(args, "--nats") {
		args = append(args, "--data", t.TempDir())
	}
	return ready(t, startWith(t, env, "broker", slices.Concat(anyPort, args)...))
}

// ready waits until a broker is ready.
func ready(t testing.TB, p *process) *brokerProcess {
	t.Helper()
	b := &brokerProcess{process: p}
	b.url = p.mustSay(t, 0, `(?m)^  bus +(nats://\S+)$`)[1]
	b.http = p.mustSay(t, 0, `(?m)^  http +(http://\S+) `)[1]
	return b
}

// startNATS starts a NATS server of its own and returns it with its URL.
func startNATS(t testing.TB) (*process, string) {
	t.Helper()
	p := start(t, "nats-server", "-dir", t.TempDir())
	return p, p.mustSay(t, 0, `ready (nats://\S+)`)[1]
}

// write writes a file of the test's own and returns its path.
func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// connect connects to the bus until the test ends.
func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := bus.Connect(t.Context(), bus.Options{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// dial makes a client until the test ends.
func dial(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask asks about a call of a tool.
func ask(ctx context.Context, c *client.Client, tool string) (*schema.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return c.Ask(ctx, &schema.Event{
		HookType: schema.PreToolUse, AgentID: "tester", SessionID: "s", ToolName: tool,
		ToolInput: []byte(`{"command":"ls"}`),
	})
}

// status is how the broker that answers first sees the fabric.
func status(nc *nats.Conn) (st schema.FabricStatus, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	subject, err := bus.ControlSubject("status", "")
	if err != nil {
		return st, err
	}
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject})
	if err != nil {
		return st, err
	}
	return st, schema.Unmarshal(m.Data, &st)
}

// awaitWorkers waits until brokers answer often enough that they all know it.
func awaitWorkers(t testing.TB, nc *nats.Conn, names ...string) {
	t.Helper()
	streak := 0
	err := eventually("every broker knows the workers", func() bool {
		st, err := status(nc)
		for _, name := range names {
			if err == nil && !awake(&st, name) {
				streak = 0
				return false
			}
		}
		if err == nil {
			streak++
		}
		return streak >= 8
	})
	if err != nil {
		t.Fatal(err)
	}
}

package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agent is the id of every client; each has its own fabric.
const agent = "agent1"

// A route is a way from a client to the fabric.
type route struct {
	name string
	// clients are those that can go it; none: all.
	clients []string
	// unnamed: the agent cannot get an id of its own.
	unnamed bool
	// lay sets the route up, and returns the arguments for `agentshim install`.
	lay func(t testing.TB, h *home, f *fabric) (args []string)
}

// routes returns all routes. Requests to the daemon reach the fabric only through it: no broker listens at the default
// address of a shim.
func routes() []route {
	return []route{
		byItself(), byDaemon(),
		{name: "http", clients: []string{"claude"}, unnamed: true, lay: func(t testing.TB, h *home, f *fabric) []string {
			url := h.serve(t, f, "--http", "127.0.0.1:0").mustSay(t, `http=(http://\S+)`)[1]
			token, err := os.ReadFile(filepath.Join(h.state(), "daemon.token"))
			if err != nil {
				t.Fatal(err)
			}
			h.more = append(h.more, "HOOKFABRIC_TOKEN="+strings.TrimSpace(string(token)))
			return []string{"--http=" + url}
		}},
	}
}

// byItself: every hook connects for itself.
func byItself() route {
	return route{name: "direct", lay: func(_ testing.TB, _ *home, f *fabric) []string {
		return []string{"--agent", agent, "--nats", f.url}
	}}
}

// byDaemon: all hooks ask the daemon of their machine.
func byDaemon() route {
	return route{name: "daemon", lay: func(t testing.TB, h *home, f *fabric) []string {
		h.serve(t, f, "--http", "")
		return []string{"--agent", agent}
	}}
}

// state is the folder of what shims keep in the home.
func (h *home) state() string { return filepath.Join(h.dir, ".local", "state", "hookfabric") }

// serve starts the home's daemon and waits until it listens.
func (h *home) serve(t testing.TB, f *fabric, args ...string) *process {
	t.Helper()
	p := start(t, h.env(), "agentshim", append([]string{"serve", "--nats", f.url}, args...)...)
	p.mustSay(t, `socket=(\S+)`)
	h.daemon = p
	return p
}

// install installs the shim as a user does, by a route.
func (h *home) install(r route, f *fabric, args ...string) {
	h.t.Helper()
	all := slices.Concat([]string{"install", h.Name, "--user"}, h.manner.install, r.lay(h.t, h, f), args)
	out, err := run(h.t.Context(), h.project, h.env(), program("agentshim"), all...)
	if err != nil {
		h.t.Fatalf("agentshim install: %v\n%s", err, out)
	}
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Logf("agentshim install said:\n%s", out)
		}
	})
}

// eachRoute runs a test for every client by every route it can go.
func eachRoute(t *testing.T, test func(*testing.T, *home, route)) {
	t.Helper()
	t.Parallel()
	for _, r := range routes() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, h *home) { test(t, h, r) }, r.clients...)
		})
	}
}

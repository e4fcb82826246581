package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// activated starts the daemon as systemd does with its unit: with an open socket. A shell sets LISTEN_PID, which
// is unknown before the process exists.
func activated(t *testing.T, socket *os.File, env ...string) *process {
	t.Helper()
	words := append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh"}, daemonWords(t)...)
	env = append([]string{"LISTEN_FDS=1", "HOOKFABRIC_HTTP=127.0.0.1:0", "HOOKFABRIC_STATE=" + t.TempDir()}, env...)
	return startHolding(t, []*os.File{socket}, env, "sh", words...)
}

// waitingAt reports whether the unix socket at path has a connection that is not accepted yet.
func waitingAt(path string) bool {
	sockets, err := os.ReadFile("/proc/net/unix")
	return err == nil && strings.Count(string(sockets), " "+path+"\n") > 1
}

// With systemd's socket the daemon starts with the first call, which waits for it, and
// leaves the socket to the next daemon when it ends.
func TestTheFirstCallStartsTheDaemon(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, "--config", write(t, dir, "hooks.yaml", denyEdits))
	path := filepath.Join(dir, "agentshim.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	env := []string{"HOOKFABRIC_NATS=" + b.url, "HOOKFABRIC_SOCKET=" + path, "HOOKFABRIC_STATE=" + t.TempDir()}
	for range 2 {
		p := startWith(t, env, "sh", "-c", `echo '{"hook_type":"PreToolUse","tool_name":"Edit","tool_input":{}}' | agentshim hook --runtime generic --agent tester`)
		if err := eventually("the call waits at the socket", func() bool { return waitingAt(path) }); err != nil {
			t.Fatal(err)
		}
		d := activated(t, socket, "HOOKFABRIC_NATS="+b.url)
		d.mustSay(t, 0, `msg=serving socket=`+path)
		if code, err := p.wait(); err != nil || code != 0 || !strings.Contains(p.said.String(), `"reason":"edits are denied"`) {
			t.Errorf("the call that came first ended with %d, %v:\n%s", code, err, p.said)
		}
		d.must(t, syscall.SIGTERM)
		if code, err := d.wait(); err != nil || code != 0 || !strings.Contains(d.said.String(), "msg=ended calls=1") {
			t.Errorf("the daemon ended with %d, %v:\n%s", code, err, d.said)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error("the daemon took systemd's socket away:", err)
		}
	}
}

// A socket of another kind is reported, and a socket for another process is ignored.
func TestTheDaemonTakesOnlyItsOwnSockets(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tcp, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for want, env := range map[string]string{
		"is not a unix socket; give agentshim.socket one ListenStream= with a path": "LISTEN_FDS=1",
		`LISTEN_FDS is "many", which is not a number of sockets`:                    "LISTEN_FDS=many",
	} {
		p := activated(t, tcp, env)
		if code, err := p.wait(); err != nil || code == 0 || !strings.Contains(p.said.String(), want) {
			t.Errorf("%s: it ended with %d, %v, and said:\n%s", env, code, err, p.said)
		}
	}
	own := filepath.Join(t.TempDir(), "d", "s")
	env := []string{"LISTEN_PID=1", "LISTEN_FDS=1", "HOOKFABRIC_HTTP=127.0.0.1:0", "HOOKFABRIC_STATE=" + t.TempDir(), "HOOKFABRIC_SOCKET=" + own}
	words := daemonWords(t)
	startHolding(t, []*os.File{tcp}, env, words[0], words[1:]...).mustSay(t, 0, `msg=serving socket=`+own)
}

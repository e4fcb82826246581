package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
)

const unitFolder = deployed + "systemd/"

// A unit is what a file for systemd says: the values of each section's keys.
type unit map[string][]string

func readUnit(t testing.TB, name string) unit {
	t.Helper()
	text, err := os.ReadFile(unitFolder + name)
	if err != nil {
		t.Fatal(err)
	}
	said, section := unit{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				t.Fatalf("%s: %q is no line of a unit", name, line)
			}
			said[section+"."+key] = append(said[section+"."+key], value)
		}
	}
	return said
}

// one is the only value of a key.
func (u unit) one(t testing.TB, key string) string {
	t.Helper()
	if len(u[key]) != 1 {
		t.Fatalf("%s has the values %q, want one", key, u[key])
	}
	return u[key][0]
}

// installed has a value of a unit as it is where the programs, the configuration and
// the state lie in dir, and the pool is "heavy".
func installed(value, dir string) string {
	return strings.NewReplacer("/usr/local/bin/", "", "/etc/hookfabric", filepath.Join(dir, "etc"),
		"${STATE_DIRECTORY}", filepath.Join(dir, "state"), "%i", "heavy").Replace(value)
}

// services are the units of programs that other machines' agents need.
func services() []string {
	return []string{"hookfabric-broker.service", "hookfabric-worker@.service"}
}

// What units say, the programs understand, and they get the time that they take to stop.
func TestUnitsUseExistingFlags(t *testing.T) {
	most := stopTimes(t)
	for _, name := range services() {
		u := readUnit(t, name)
		understands(t, name, strings.Fields(installed(u.one(t, "Service.ExecStart"), t.TempDir())))
		for _, set := range u["Service.Environment"] {
			variable, _, _ := strings.Cut(set, "=")
			takesVariable(t, name, variable, "hookworker")
		}
		stop, err := time.ParseDuration(u.one(t, "Service.TimeoutStopSec"))
		if err != nil || stop <= most {
			t.Errorf("%s gives its program %s to stop, which takes up to %s: %v", name, stop, most, err)
		}
		for _, key := range []string{"NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "CapabilityBoundingSet", "SystemCallFilter", "UMask", "User", "MemoryMax"} {
			if len(u["Service."+key]) == 0 {
				t.Errorf("%s says nothing of %s", name, key)
			}
		}
		if families := strings.Fields(u.one(t, "Service.RestrictAddressFamilies")); !slices.Contains(families, "AF_NETLINK") {
			t.Errorf("%s may use %q, and so not find the addresses of its machine", name, families)
		}
		if kind := u.one(t, "Service.Type"); kind != "exec" {
			t.Errorf("%s is of type %s; the programs do not tell systemd when they are ready", name, kind)
		}
	}
}

// The daemon understands its unit, and listens where hooks look.
func TestTheUnitsOfTheDaemonUseExistingFlags(t *testing.T) {
	socket, service := readUnit(t, "agentshim.socket"), readUnit(t, "agentshim.service")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	at := strings.ReplaceAll(socket.one(t, "Socket.ListenStream"), "%t", "/run/user/1")
	if want := (daemon.Place{State: "/state"}).Socket(); at != want {
		t.Errorf("it listens at %s, and hooks look at %s", at, want)
	}
	if mode := socket.one(t, "Socket.SocketMode"); mode != "0600" {
		t.Errorf("the socket's mode is %s", mode)
	}
	words := daemonWords(t)
	if understands(t, "agentshim.service", words); words[0] != "agentshim" || words[1] != "serve" {
		t.Errorf("it runs %q", words)
	}
	for _, key := range []string{"NoNewPrivileges", "RestrictAddressFamilies", "SystemCallFilter", "UMask"} {
		if len(service["Service."+key]) == 0 {
			t.Errorf("the service says nothing of %s", key)
		}
	}
}

// daemonWords are what the daemon's unit runs.
func daemonWords(t testing.TB) []string {
	t.Helper()
	return strings.Fields(strings.ReplaceAll(readUnit(t, "agentshim.service").one(t, "Service.ExecStart"), "%h/.local/bin/", ""))
}

// stopTimes is the longest that a program gives itself to stop.
func stopTimes(t testing.TB) (most time.Duration) {
	t.Helper()
	for _, file := range []string{"../broker/app/main.go", "../../workers/serve.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^const (?:stopTime|drainTime) = (\d+) \* time\.Second$`).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("%s does not say any more how long a stop may take", file)
		}
		d, err := time.ParseDuration(m[1] + "s")
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, d)
	}
	return most
}

// systemd takes the daemon's units.
func TestSystemdTakesTheDaemonsUnits(t *testing.T) {
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT TRIED: there is no systemd-analyze here, so that systemd takes the daemon's units stays untested")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dir := t.TempDir()
	for _, name := range []string{"agentshim.socket", "agentshim.service"} {
		text, err := os.ReadFile(unitFolder + name)
		if err != nil {
			t.Fatal(err)
		}
		// The program has to be there for it.
		file := write(t, dir, name, strings.ReplaceAll(string(text), "%h/.local/bin/agentshim", "/bin/true"))
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verify := exec.CommandContext(ctx, path, "verify", "--user", filepath.Join(dir, "agentshim.service"))
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// systemd takes the units, and finds them as tight as a program that runs others' can be.
func TestSystemdTakesTheServices(t *testing.T) {
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT TRIED: there is no systemd-analyze here, so that systemd takes the units stays untested")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dir := t.TempDir()
	for _, name := range services() {
		text, err := os.ReadFile(unitFolder + name)
		if err != nil {
			t.Fatal(err)
		}
		// The programs and their user have to be there for it.
		said := regexp.MustCompile(`/usr/local/bin/\w+`).ReplaceAllString(string(text), "/bin/true")
		said = regexp.MustCompile(`(?m)^(User|Group)=.*$`).ReplaceAllString(said, "$1=root")
		file := write(t, dir, strings.Replace(name, "@", "@heavy", 1), said)
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"verify", file}, {"security", "--offline=yes", "--threshold=30", file}} {
			if out, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
				t.Errorf("systemd-analyze %s %s: %v\n%s", args[0], name, err, out)
			}
		}
	}
}

// TestUnitsStart starts the command lines of the units without systemd, with their environment, one
// after the other. Each must end in time after a signal. A real systemd needs root;
// TestSystemdStartsTheUnits uses one.
func TestUnitsStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policies := filepath.Join(dir, "etc", "hooks")
	for _, folder := range []string{policies, filepath.Join(dir, "state")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, policies, "refuse.sh", "#!/bin/sh\necho the worker was asked >&2\nexit 2\n")
	write(t, filepath.Join(dir, "etc"), "hooks.yaml", "hooks: {PreToolUse: [{handler: ./refuse.sh, pool: heavy, fail_closed: true}]}\n")
	brokerUnit, workerUnit := readUnit(t, services()[0]), readUnit(t, services()[1])

	words := strings.Fields(installed(brokerUnit.one(t, "Service.ExecStart"), dir))
	b := startWith(t, []string{"HOOKFABRIC_LISTEN=127.0.0.1:0", "HOOKFABRIC_HTTP=127.0.0.1:0"}, words[0], words[1:]...)
	url := b.mustSay(t, 0, `(?m)^  bus +(nats://\S+)$`)[1]

	words = strings.Fields(installed(workerUnit.one(t, "Service.ExecStart"), dir))
	env := slices.Concat(workerUnit["Service.Environment"], []string{"HOOKFABRIC_HTTP=127.0.0.1:0", "HOOKFABRIC_NATS=" + url})
	w := startWith(t, env, words[0], words[1:]...)
	w.mustSay(t, 0, `health checks and metrics`)

	c := dial(t, url)
	if err := eventually("the worker judges", func() bool {
		v, err := ask(t.Context(), c, "Bash")
		return err == nil && strings.Contains(v.Reason, "the worker was asked")
	}); err != nil {
		t.Error(err)
	}
	for _, p := range []*process{w, b} {
		p.must(t, syscall.SIGTERM)
		if code, err := p.wait(); err != nil || code != 0 {
			t.Errorf("%s ended with %d, %v", p.name, code, err)
		}
	}
}

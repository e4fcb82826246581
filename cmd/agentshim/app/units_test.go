package app

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
)

const units = "../../../deploy/systemd"

// unit reads a unit file: what each section says.
func unit(t *testing.T, name string) map[string][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(units, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	said, section := map[string][]string{}, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
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

// The units say what the daemon understands, and put the socket where hooks look.
func TestTheUnitsAreWhatTheDaemonTakes(t *testing.T) {
	socket, service := unit(t, "agentshim.socket"), unit(t, "agentshim.service")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	listens := socket["Socket.ListenStream"]
	if len(listens) != 1 || strings.ReplaceAll(listens[0], "%t", "/run/user/1") != (daemon.Place{State: "/state"}).Socket() {
		t.Errorf("it listens at %q", listens)
	}
	if m := socket["Socket.SocketMode"]; len(m) != 1 || m[0] != "0600" {
		t.Errorf("the socket's mode is %q", m)
	}
	words := strings.Fields(strings.Join(service["Service.ExecStart"], " "))
	if len(words) < 2 || words[1] != "serve" {
		t.Fatalf("it runs %q", words)
	}
	c := serveCommand()
	if err := c.ParseFlags(words[2:]); err != nil {
		t.Errorf("%q: %v", words, err)
	}
	for _, key := range []string{"NoNewPrivileges", "RestrictAddressFamilies", "SystemCallFilter", "UMask"} {
		if len(service["Service."+key]) == 0 {
			t.Errorf("the service says nothing of %s", key)
		}
	}
}

func TestSystemdTakesTheUnits(t *testing.T) {
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here: that systemd takes the unit files stays untested")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dir := t.TempDir()
	for _, name := range []string{"agentshim.socket", "agentshim.service"} {
		text, err := os.ReadFile(filepath.Join(units, name))
		if err != nil {
			t.Fatal(err)
		}
		// The program has to be there for it.
		said := strings.ReplaceAll(string(text), "%h/.local/bin/agentshim", "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify := exec.CommandContext(ctx, path, "verify", "--user", filepath.Join(dir, "agentshim.service"))
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	out, err := verify.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A machine has systemd as its first process, and the units of deploy/systemd.
type machine struct{ pid string }

// run runs a command there.
func (m machine) run(stdin string, words ...string) (said string, err error) {
	c := exec.Command("nsenter", slices.Concat([]string{"--target", m.pid, "--mount", "--pid", "--net", "--uts", "--ipc", "--"}, words)...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err
}

// until waits until a command succeeds there and says something.
func (m machine) until(t testing.TB, something, stdin string, words ...string) {
	t.Helper()
	said := ""
	if err := eventually(strings.Join(words, " ")+" says "+something, func() bool {
		out, err := m.run(stdin, words...)
		said = out
		return err == nil && strings.Contains(out, something)
	}); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// must runs a command that succeeds.
func (m machine) must(t testing.TB, words ...string) string {
	t.Helper()
	said, err := m.run("", words...)
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(words, " "), err, said)
	}
	return strings.TrimSpace(said)
}

// systemdIs is where systemd is, or the test is skipped.
func systemdIs(t testing.TB) string {
	t.Helper()
	systemd := ""
	for _, at := range []string{"/lib/systemd/systemd", "/usr/lib/systemd/systemd"} {
		if _, err := os.Stat(at); err == nil {
			systemd = at
		}
	}
	missing := systemd == "" || os.Geteuid() != 0
	for _, tool := range []string{"unshare", "nsenter", "ip", "systemd-sysusers"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = true
		}
	}
	if !long() || missing {
		t.Skip("UNITS ARE NOT STARTED BY SYSTEMD: that takes HOOKFABRIC_LONG=1, root, systemd, and the commands unshare, nsenter and ip")
	}
	return systemd
}

// startMachine starts one. What the units name besides each other is there and does nothing.
func startMachine(t *testing.T) machine {
	t.Helper()
	systemd, dir, group := systemdIs(t), t.TempDir(), fmt.Sprintf("hookfabric-test-%d", os.Getpid())
	for _, folder := range []string{"bin", "units", "hookfabric/hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	install := func(from, to string) {
		t.Helper()
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"broker", "hookworker", "agentshim"} {
		at, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		install(at, "bin/"+program)
	}
	for _, name := range services() {
		install(unitFolder+name, "units/"+name)
	}
	install(unitFolder+"hookfabric.conf", "hookfabric.conf")
	for _, name := range []string{"sysinit", "basic", "shutdown", "network-online", "multi-user"} {
		write(t, filepath.Join(dir, "units"), name+".target", "[Unit]\nDefaultDependencies=no\n")
	}
	write(t, filepath.Join(dir, "hookfabric/hooks"), "refuse.sh", "#!/bin/sh\necho \"$(id -un) was asked\" >&2\nexit 2\n")
	write(t, filepath.Join(dir, "hookfabric"), "hooks.yaml", "hooks: {PreToolUse: [{handler: ./refuse.sh, pool: heavy, fail_closed: true}]}\n")
	readable(t, filepath.Join(dir, "hookfabric"))
	script, err := filepath.Abs("testdata/systemd/first.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eventually("the machine's control groups are gone", func() bool { return dissolved(group) }); err != nil {
			t.Error(err)
		}
	})
	p := startWith(t, []string{"SYSTEMD=" + systemd}, script, "outside", group, dir)
	children := fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", p.cmd.Process.Pid)
	m := machine{}
	if err := eventually("systemd is there", func() bool {
		child, err := os.ReadFile(children)
		m.pid = strings.TrimSpace(string(child))
		name, nerr := os.ReadFile("/proc/" + m.pid + "/comm") // the script has had others
		return err == nil && nerr == nil && string(name) == "systemd\n"
	}); err != nil {
		t.Fatal(err)
	}
	m.until(t, "active", "", "systemctl", "is-active", "basic.target")
	return m
}

// readable lets everybody read a folder: brokers and workers are users of their own.
func readable(t testing.TB, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	}); err != nil {
		t.Fatal(err)
	}
}

// dissolved removes the control groups of a machine, as far as its processes are gone.
func dissolved(group string) bool {
	left := false
	for _, pattern := range []string{"/sys/fs/cgroup/" + group, "/sys/fs/cgroup/*/" + group} {
		found, _ := filepath.Glob(pattern) // the pattern is sound
		for _, top := range found {
			var all []string
			_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					all = append(all, path)
				}
				return nil
			})
			for _, path := range slices.Backward(all) {
				left = os.Remove(path) != nil || left
			}
		}
	}
	return !left
}

// systemd starts the units as they are, with everything that they do not permit, as the users that
// hookfabric.conf makes. It starts a broker again that was killed, and stops both in time.
func TestSystemdStartsTheUnits(t *testing.T) {
	m := startMachine(t)
	broker, worker := "hookfabric-broker.service", "hookfabric-worker@heavy.service"
	m.must(t, "systemctl", "start", broker, worker)
	const call = `{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash","tool_input":{}}`
	ask := []string{"agentshim", "hook", "--runtime", "generic", "--nats", "nats://127.0.0.1:4222", "--state", "/run/shim"}
	m.until(t, "hookfabric-worker was asked", call, ask...)
	m.until(t, `"reason":"hookfabric-worker was asked"`, call, ask...)

	fabric := firstLine(m.must(t, "broker", "status"))
	before := m.must(t, "systemctl", "show", "--property=MainPID", "--value", broker)
	m.must(t, "systemctl", "kill", "--signal=KILL", broker)
	if err := eventually("systemd starts the broker again", func() bool {
		now, err := m.run("", "systemctl", "show", "--property=MainPID", "--value", broker)
		pid := strings.TrimSpace(now)
		return err == nil && pid != "0" && pid != before
	}); err != nil {
		t.Fatal(err)
	}
	m.until(t, "hookfabric-worker was asked", call, ask...)
	if again := firstLine(m.must(t, "broker", "status")); again != fabric {
		t.Errorf("after it was started again it is %q, and was %q", again, fabric)
	}
	for _, name := range []string{worker, broker} {
		m.must(t, "systemctl", "stop", name)
		if result := m.must(t, "systemctl", "show", "--property=Result", "--value", name); result != "success" {
			t.Errorf("%s was stopped with the result %q", name, result)
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

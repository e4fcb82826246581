package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/server"
)

func guide(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(deployed + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The guide's commands are ones that the programs understand, and the ports it names are
// where they listen.
func TestTheGuideIsRight(t *testing.T) {
	t.Parallel()
	text := guide(t)
	namesCommands(t, "deploy/README.md", text, helpOfAll(t))
	commands := 0
	for _, b := range bookBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.ReplaceAll(b[2], "\\\n", " ")) {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "sudo -u hookfabric "))
			if b[1] == "sh" && len(words) > 0 {
				commands++
				understands(t, "deploy/README.md", words)
			}
			if name, _, ok := strings.Cut(line, "="); ok && b[1] == "text" {
				takesVariable(t, "deploy/README.md", name, "broker", "serve")
			}
		}
	}
	if commands < 15 {
		t.Errorf("the guide has %d commands", commands)
	}
	for port, help := range map[string]string{"4222": helpOf(t, "broker", "serve"), "8480": helpOf(t, "broker", "serve"), "7717": helpOf(t, "agentshim", "serve")} {
		if !strings.Contains(text, "\n| "+port+" | ") || !strings.Contains(help, "127.0.0.1:"+port) {
			t.Errorf("the port %s is not what the guide or the program says", port)
		}
	}
	if at := readUnit(t, services()[1]).one(t, "Service.Environment"); !strings.HasSuffix(at, ":8482") || !strings.Contains(text, "\n| 8482 | ") {
		t.Errorf("the worker's unit listens at %s, which the guide does not say", at)
	}
	if !strings.Contains(text, "up to 10 GiB") || server.DefaultMaxStore != 10<<30 {
		t.Error("the guide says another size of the store than the server has")
	}
}

// Every file of deploy is named in the guide, or lies in a folder that is.
func TestTheGuideNamesEveryFile(t *testing.T) {
	named := regexp.MustCompile("`([a-z0-9]+/[^` ]*)`").FindAllStringSubmatch(guide(t), -1)
	err := filepath.WalkDir(deployed, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(deployed, path)
		if err != nil || d.IsDir() || name == "README.md" || name == "METRICS.md" || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		if strings.Contains(name, "__pycache__") || name == "docker/Dockerfile.dockerignore" || name == "docker/prometheus.yaml" {
			return nil // what belongs to another one that is named
		}
		if !slices.ContainsFunc(named, func(m []string) bool {
			return name == m[1] || strings.HasSuffix(m[1], "/") && strings.HasPrefix(name, m[1])
		}) {
			t.Errorf("deploy/README.md does not name %s", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A copy of a stopped broker's data directory, brought back elsewhere, has what waited.
func TestABackupIsBroughtBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "broker")
	b := startBroker(t, "--data", data, "--config", write(t, dir, "hooks.yaml", "hooks: {}\n"))
	if code, err := start(t, "broker", "inject", "--nats", b.url, "--agent", "scout", "--key", "kept", "The tests moved.").wait(); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	b.must(t, syscall.SIGTERM)
	if code, err := b.wait(); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	// As cmd/broker/OPERATING.md says.
	script := `tar -C "$1" -czf "$1/copy.tar.gz" broker && rm -r "$1/broker" && tar -C "$1" -xzf "$1/copy.tar.gz"`
	if out, err := exec.Command("sh", "-c", script, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b = startBroker(t, "--data", data)
	p := start(t, "broker", "pending", "--nats", b.url, "--agent", "scout")
	p.mustSay(t, 0, `(?m)^queued .*kept$`)
}

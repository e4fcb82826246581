package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// mcpPackages installs packages of the npm registry into a folder of the test's, or skips.
func mcpPackages(t *testing.T, what string, names ...string) (bin string) {
	t.Helper()
	if !long() {
		t.Skip("NOT TESTED: " + what + "; set HOOKFABRIC_LONG=1")
	}
	dir := t.TempDir()
	npm(t, dir, what, "init", "--yes")
	npm(t, dir, what, append([]string{"install", "--no-audit", "--no-fund"}, names...)...)
	return filepath.Join(dir, "node_modules", ".bin")
}

func npm(t *testing.T, dir, what string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "npm", args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: %s; npm %s: %v\n%s", what, args[0], err, lastLines(string(out), 5))
	}
}

// quiet is a fabric with hooks that see every call and mind none.
func quiet(t *testing.T) *brokerProcess {
	t.Helper()
	config := write(t, t.TempDir(), "hooks.yaml", "hooks:\n  PreToolUse:\n    - {type: builtin, handler: log}\n  PostToolUse:\n    - {type: builtin, handler: log}\n")
	return startBroker(t, "--config", config)
}

// TestReferenceMCPServersAnswerTheSame calls all tools of the reference servers,
// directly and through the proxy.
func TestReferenceMCPServersAnswerTheSame(t *testing.T) {
	bin := mcpPackages(t, "the reference MCP servers through the proxy", "@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
	b := quiet(t)
	for name, argv := range map[string]func(dir string) []string{
		"everything": func(string) []string { return []string{filepath.Join(bin, "mcp-server-everything"), "stdio"} },
		"filesystem": func(dir string) []string { return []string{filepath.Join(bin, "mcp-server-filesystem"), dir} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var all [2][]string
			for i := range all {
				files := filepath.Join(dir, "files")
				if err := errors.Join(os.RemoveAll(files), os.Mkdir(files, 0o700), os.WriteFile(filepath.Join(files, "a.txt"), []byte("hello\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
				line := argv(files)
				if i == 1 {
					line = append(append(through(b.url, "--server", name), "--"), line...)
				}
				all[i] = tried(mcpOver(t, nil, line...), files)
			}
			if len(all[0]) < 10 {
				t.Fatalf("only %d answers: %s", len(all[0]), all[0])
			}
			if diff := cmp.Diff(all[0], all[1]); diff != "" {
				t.Errorf("direct (-), through the proxy (+):\n%s", diff)
			}
			t.Logf("%d answers are the same", len(all[0]))
		})
	}
}

// tried is what a server says of itself, and what each of its tools answers to
// arguments that its schema allows.
func tried(c *mcpClient, files string) (answers []string) {
	listed := c.ask("tools/list", `{}`)
	answers = append(answers, listed)
	var m struct {
		Result struct {
			Tools []struct {
				Name   string `json:"name"`
				Schema struct {
					Properties map[string]map[string]any `json:"properties"`
					Required   []string                  `json:"required"`
				} `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := schema.Unmarshal([]byte(listed), &m); err != nil {
		c.t.Fatal(err)
	}
	for _, tool := range m.Result.Tools {
		args := map[string]any{}
		for _, name := range tool.Schema.Required {
			args[name] = anything(name, tool.Schema.Properties[name], files)
		}
		data, err := schema.Marshal(args)
		if err != nil {
			c.t.Fatal(err)
		}
		answers = append(answers, tool.Name+string(data)+": "+untimed(c.call(tool.Name, string(data))))
	}
	return append(answers, c.call("no-such-tool", `{}`), c.ask("ping", `{}`), c.ask("no/such/method", `{}`))
}

// anything is a value that a property takes.
func anything(name string, s map[string]any, files string) any {
	if words, ok := s["enum"].([]any); ok && len(words) > 0 {
		return words[0]
	}
	switch s["type"] {
	case "number", "integer":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{filepath.Join(files, "a.txt")}
	case "object":
		return map[string]any{}
	}
	if strings.Contains(strings.ToLower(name), "path") || name == "source" {
		return filepath.Join(files, "a.txt")
	}
	if name == "destination" {
		return filepath.Join(files, "b.txt")
	}
	return "hello"
}

// untimed takes out of an answer what no two answers have in common.
func untimed(answer string) string {
	for _, pattern := range []string{`\d{1,2}:\d{2}:\d{2}( [AP]M)?`, `\d{4}-\d{2}-\d{2}T[\d:.]+Z`, `(accessed|modified|created): [^\\"]+`} {
		answer = regexp.MustCompile(pattern).ReplaceAllString(answer, "<time>")
	}
	if strings.Contains(answer, "HOOKFABRIC_") || strings.Contains(answer, `\"PATH\"`) { // the server's environment
		return "<environment>"
	}
	return answer
}

// TestTheMCPConformanceSuiteSeesNoProxy runs the protocol's own test suite
// against a server, and against the proxy before it.
func TestTheMCPConformanceSuiteSeesNoProxy(t *testing.T) {
	const what = "the MCP conformance suite through the proxy"
	bin := mcpPackages(t, what, "@modelcontextprotocol/conformance", "node@22")
	server := filepath.Join(t.TempDir(), "everything-server")
	build := exec.CommandContext(t.Context(), "go", "install", "github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0")
	build.Dir, build.Env = t.TempDir(), append(os.Environ(), "GOBIN="+filepath.Dir(server), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: %s; building its server: %v\n%s", what, err, lastLines(string(out), 5))
	}
	b := quiet(t)
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateless %t", stateless), func(t *testing.T) {
			direct := bustest.FreeAddresses(t, 1)[0]
			startOther(t, server, "-http", direct, fmt.Sprintf("-stateless=%t", stateless))
			p := start(t, "agentshim", "mcp", "--agent", "coder", "--nats", b.url, "--url", "http://"+direct+"/mcp", "--listen", "127.0.0.1:0")
			proxied := p.mustSay(t, 0, `clients reach the server at (http://\S+)`)[1]
			want, got := conformance(t, bin, "http://"+direct+"/mcp"), conformance(t, bin, proxied)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("direct (-), through the proxy (+):\n%s", diff)
			}
			t.Logf("%d scenarios: %s", len(got)-1, got[len(got)-1])
		})
	}
}

// conformance are the lines in which the suite says what came of each scenario.
func conformance(t *testing.T, bin, url string) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(bin, "node"), filepath.Join(bin, "conformance"), "server", "--suite", "all", "--url", url)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); regexp.MustCompile(`passed, \d+ failed`).MatchString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) < 20 {
		t.Fatalf("the suite said:\n%s", lastLines(string(out), 20))
	}
	return lines
}

// startOther starts another program's server, which listens at the second of its arguments, until the test ends.
func startOther(t *testing.T, path string, args ...string) {
	t.Helper()
	p, err := launch(t.TempDir(), os.Environ(), path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	err = eventually("the server listens", func() bool {
		res, err := http.Get("http://" + args[1] + "/")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMCPEcho is what an echo costs directly, through the proxy where no hook
// matches, and where one does before and one after the call.
func BenchmarkMCPEcho(b *testing.B) {
	dir := b.TempDir()
	none := startBroker(b, "--config", write(b, dir, "none.yaml", "presets: []\nhooks: {}\n"))
	hooks := startBroker(b, "--config", write(b, dir, "hooks.yaml", "hooks:\n  PreToolUse:\n    - {type: builtin, handler: log}\n  PostToolUse:\n    - {type: builtin, handler: log}\n"))
	lines := []struct {
		name string
		argv []string
	}{
		{"direct", []string{"mcpserver"}},
		{"no-hook", append(through(none.url), "--", "mcpserver")},
		{"hooks", append(through(hooks.url), "--", "mcpserver")},
	}
	clients := make([]*mcpClient, len(lines))
	for i, l := range lines {
		clients[i] = mcpOver(b, nil, l.argv...)
		for range 100 {
			clients[i].call("echo", `{"m":"x"}`)
		}
	}
	took := make([][]time.Duration, len(lines))
	for b.Loop() { // in turn, so that all meet the same machine
		for i, c := range clients {
			began := time.Now()
			if r := c.call("echo", `{"m":"x"}`); !strings.Contains(r, `"text":"x"`) {
				b.Fatal(r)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, l := range lines {
		slices.Sort(took[i])
		median := took[i][len(took[i])/2]
		b.ReportMetric(float64(median.Microseconds()), l.name+"-p50-us")
	}
}

package sdktest_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/agent/sdktest"
)

// typescriptDir has the npm package.
const typescriptDir = "../typescript"

var update = flag.Bool("update", false, "generate hookfabric.mjs and hookfabric.d.mts again (needs tsc)")

// header begins the generated files.
const header = "// Generated from hookfabric.ts. Change that file, then run the tests of bus/agent/sdktest with -update.\n"

// TestJavaScript runs the JavaScript tests of the client. A node that can strip types also
// runs them with the TypeScript source.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	node, major, minor := nodeThere(t)
	run := func(t *testing.T, argv ...string) {
		daemon := sdktest.NewDaemon(t)
		out := sdktest.Script{Dir: typescriptDir, Daemon: daemon, Argv: append([]string{node}, argv...)}.Run(t)
		if !regexp.MustCompile(`(?m)^# pass [1-9]\d$`).MatchString(out) || !strings.Contains(out, "# skipped 0") {
			t.Errorf("some tests did not run:\n%s", out)
		}
		for _, want := range []string{
			`POST /v1/events/PreToolUse?unreachable=deny&render=anthropic {"hook_type":"PreToolUse","tool_name":"Bash","agent_id":"agent1"}`,
			`POST /v1/ack {"agent_id":"agent1","event_ids":["e1","e2"]}`,
			`POST /v1/mode {"agent_id":"agent1"}`,
			`POST /v1/mode {"agent_id":"agent1","vote_only":true}`,
			`POST /v1/checkpoint {"agent_id":"agent1"}`,
			`POST /hook/claude/PreToolUse?unreachable=deny&agent=agent%2F1 `,
		} {
			if !strings.Contains(daemon.Got(), want) {
				t.Errorf("the daemon got no request %s, but\n%s", want, daemon.Got())
			}
		}
	}
	t.Run("without types", func(t *testing.T) {
		t.Parallel()
		run(t, "--test", "--test-reporter=tap", "testdata/hookfabric.test.mjs")
	})
	t.Run("with types", func(t *testing.T) {
		if major < 22 || major == 22 && minor < 6 {
			t.Skipf("SKIPPED: node %d.%d cannot strip types, so only the generated hookfabric.mjs is tested", major, minor)
		}
		t.Parallel()
		run(t, "--experimental-strip-types", "--test", "--test-reporter=tap", "testdata/hookfabric.typed.test.mjs")
	})
}

// nodeThere returns the node on the PATH and its version.
func nodeThere(t *testing.T) (path string, major, minor int) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: no node on the PATH, so bus/agent/typescript is not tested")
	}
	out, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.Split(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	major, _ = strconv.Atoi(version[0])
	minor, _ = strconv.Atoi(version[1])
	if major < 20 {
		t.Skipf("SKIPPED: node %s is older than 20, so bus/agent/typescript is not tested", out)
	}
	return node, major, minor
}

// TestTheJavaScriptIsMadeOfTheTypeScript compares hookfabric.mjs and hookfabric.d.mts with the output
// of tsc. They are in the repository so that users need no build step.
func TestTheJavaScriptIsMadeOfTheTypeScript(t *testing.T) {
	tsc := tscThere(t)
	dir := typed(t, tsc)
	if out, err := compiled(t, tsc, dir, "--outDir", "out", "--declaration", "hookfabric.ts"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, output := range map[string]string{"hookfabric.mjs": "hookfabric.js", "hookfabric.d.mts": "hookfabric.d.ts"} {
		generated, err := os.ReadFile(filepath.Join(dir, "out", output))
		if err != nil {
			t.Fatal(err)
		}
		generated = append([]byte(header), generated...)
		if *update {
			if err := os.WriteFile(filepath.Join(typescriptDir, file), generated, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(read(t, file)), string(generated)); diff != "" {
			t.Errorf("%s differs from what tsc generates from hookfabric.ts; run this test with -update (-file +generated):\n%s", file, diff)
		}
	}
}

// tscThere returns the compiler on the PATH.
func tscThere(t *testing.T) string {
	t.Helper()
	tsc, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("SKIPPED: no tsc on the PATH, so the types of hookfabric.ts are not checked; install it with: npm install typescript @types/node")
	}
	return tsc
}

// typed returns a folder with hookfabric.ts and the types that it needs.
func typed(t *testing.T, tsc string) string {
	t.Helper()
	dir := t.TempDir()
	copyTo(t, filepath.Join(dir, "hookfabric.ts"))
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(tsc)
	if err != nil {
		t.Fatal(err)
	}
	modules := real[:strings.LastIndex(real, "node_modules")+len("node_modules")]
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// compiled runs the compiler in a folder, and returns its output.
func compiled(t *testing.T, tsc, dir string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tsc, append([]string{"--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2023,esnext.disposable,dom",
		"--module", "nodenext", "--erasableSyntaxOnly", "--verbatimModuleSyntax", "--types", "node"}, args...)...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

func copyTo(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, read(t, "hookfabric.ts"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read reads a file of the npm package.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(typescriptDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBothFilesSayTheSame needs no compiler: both files must have the same texts.
func TestBothFilesSayTheSame(t *testing.T) {
	texts := regexp.MustCompile("`[^`]*`|\"[^\"\n]*\"")
	source := read(t, "hookfabric.ts")
	for _, alias := range regexp.MustCompile(`(?m)^export type [^{]*?;$`).FindAll(source, -1) {
		source = bytes.Replace(source, alias, nil, 1) // types contain texts, too
	}
	textsOf := func(file []byte) (all []string) {
		for line := range strings.Lines(string(file)) {
			if code := strings.TrimSpace(line); !strings.HasPrefix(code, "*") && !strings.HasPrefix(code, "//") && !strings.HasPrefix(code, "/*") {
				all = append(all, texts.FindAllString(code, -1)...)
			}
		}
		return all
	}
	want, got := textsOf(source), textsOf(read(t, "hookfabric.mjs"))
	if diff := cmp.Diff(want, got); len(want) < 50 || diff != "" {
		t.Errorf("hookfabric.mjs is older than hookfabric.ts; install tsc and run the tests with -update (-ts +mjs):\n%s", diff)
	}
}

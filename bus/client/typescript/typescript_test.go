package typescript_test

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

	"github.com/hookfabric/hookfabric/bus/client/sdktest"
)

func TestMain(m *testing.M) { os.Exit(sdktest.Main(m)) }

var update = flag.Bool("update", false, "write hookfabric.mjs anew")

// header begins hookfabric.mjs.
const header = "// Made of hookfabric.ts by taking the types out. Change that file, then run the tests with -update.\n"

// The tests themselves are in JavaScript. A node that can take types out runs
// the TypeScript itself as well.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	node, major, minor := nodeThere(t)
	run := func(t *testing.T, argv ...string) {
		daemon := sdktest.NewDaemon(t)
		out := sdktest.Script{Daemon: daemon, Argv: append([]string{node}, argv...)}.Run(t)
		if !regexp.MustCompile(`(?m)^# pass [1-9]\d$`).MatchString(out) || !strings.Contains(out, "# skipped 0") {
			t.Errorf("that were not all tests:\n%s", out)
		}
		for _, want := range []string{
			`POST /v1/events/PreToolUse?unreachable=deny&render=anthropic {"hook_type":"PreToolUse","tool_name":"Bash","agent_id":"agent1"}`,
			`POST /v1/ack {"agent_id":"agent1","event_ids":["e1","e2"]}`,
			`POST /hook/claude/PreToolUse?unreachable=deny&agent=agent%2F1 `,
		} {
			if !strings.Contains(daemon.Got(), want) {
				t.Errorf("the daemon was never asked %s, but\n%s", want, daemon.Got())
			}
		}
	}
	t.Run("without types", func(t *testing.T) {
		t.Parallel()
		run(t, "--test", "--test-reporter=tap", "testdata/hookfabric.test.mjs")
	})
	t.Run("with types", func(t *testing.T) {
		if major < 22 || major == 22 && minor < 6 {
			t.Skipf("node %d.%d can not take types out: hookfabric.ts itself does not run here, only what is made of it", major, minor)
		}
		t.Parallel()
		run(t, "--experimental-strip-types", "--test", "--test-reporter=tap", "testdata/hookfabric.typed.test.mjs")
	})
}

// nodeThere is the node on the PATH.
func nodeThere(t *testing.T) (path string, major, minor int) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on the PATH: bus/client/typescript/hookfabric.ts and what is made of it stay untested")
	}
	out, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.Split(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	major, _ = strconv.Atoi(version[0])
	minor, _ = strconv.Atoi(version[1])
	if major < 20 {
		t.Skipf("node %s is older than 20: bus/client/typescript/hookfabric.ts and what is made of it stay untested", out)
	}
	return node, major, minor
}

// What is made must be what the source makes.
func TestTheJavaScriptIsMadeOfTheTypeScript(t *testing.T) {
	tsc := tscThere(t)
	dir := typed(t, tsc)
	if out, err := compiled(t, tsc, dir, "--outDir", "out", "hookfabric.ts"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := os.ReadFile(filepath.Join(dir, "out", "hookfabric.js"))
	if err != nil {
		t.Fatal(err)
	}
	made = append([]byte(header), made...)
	if *update {
		if err := os.WriteFile("hookfabric.mjs", made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(read(t, "hookfabric.mjs")), string(made)); diff != "" {
		t.Errorf("hookfabric.mjs is not what hookfabric.ts makes; run this test with -update (-file +made):\n%s", diff)
	}
}

// tscThere is the compiler on the PATH.
func tscThere(t *testing.T) string {
	t.Helper()
	tsc, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("no tsc on the PATH (npm install typescript @types/node): the types of hookfabric.ts are not checked, and hookfabric.mjs only by its texts")
	}
	return tsc
}

// typed is a folder with hookfabric.ts and the types that it needs.
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

// compiled compiles in a folder, and returns what the compiler says.
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

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Without a compiler this much can be seen: whatever the one says, the other says too.
func TestBothFilesSayTheSame(t *testing.T) {
	texts := regexp.MustCompile("`[^`]*`|\"[^\"\n]*\"")
	source := read(t, "hookfabric.ts")
	for _, alias := range regexp.MustCompile(`(?m)^export type [^{]*?;$`).FindAll(source, -1) {
		source = bytes.Replace(source, alias, nil, 1) // types have texts, too
	}
	said := func(file []byte) (all []string) {
		for line := range strings.Lines(string(file)) {
			if code := strings.TrimSpace(line); !strings.HasPrefix(code, "*") && !strings.HasPrefix(code, "//") && !strings.HasPrefix(code, "/*") {
				all = append(all, texts.FindAllString(code, -1)...)
			}
		}
		return all
	}
	want, got := said(source), said(read(t, "hookfabric.mjs"))
	if diff := cmp.Diff(want, got); len(want) < 50 || diff != "" {
		t.Errorf("hookfabric.mjs is not made of this hookfabric.ts; run the tests with -update where there is tsc (-ts +mjs):\n%s", diff)
	}
}

package hookfabric_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A docBlock is a fenced block of a document. The word after its language is its role:
// "server" keeps running during the blocks after it, "test" is a command of .ci/run, and
// a path names the file that contains the text.
type docBlock struct{ lang, is, text string }

func docBlocks(doc string) (all []docBlock) {
	fence := regexp.MustCompile("(?ms)^```(\\w+) ?(\\S*)\n(.*?)^```$")
	for _, m := range fence.FindAllStringSubmatch(doc, -1) {
		all = append(all, docBlock{lang: m[1], is: m[2], text: m[3]})
	}
	return all
}

func readDoc(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// documents are the documents with commands. TestDocuments runs them.
func documents() []string {
	return []string{
		"README.md",
		"schema/HOOKS.md",
		"workers/README.md",
		"cmd/agentshim/RUNTIMES.md",
		"bus/agent/README.md",
		"bus/agent/python/README.md",
		"bus/agent/typescript/README.md",
		"workers/python/README.md",
		"cmd/broker/OPERATING.md",
		"deploy/METRICS.md",
		"SECURITY.md",
		"loadtest/README.md",
	}
}

// TestDocuments runs the commands of each document in their order, with real processes,
// and compares their output with the block that follows.
func TestDocuments(t *testing.T) {
	search := programs(t) + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, doc := range documents() {
		t.Run(doc, func(t *testing.T) {
			r := &docRun{t: t, doc: doc, path: search, dir: t.TempDir(), state: t.TempDir(), tmp: t.TempDir()}
			for blocks := docBlocks(readDoc(t, doc)); len(blocks) > 0; blocks = blocks[1:] {
				r.block(blocks[0], blocks[1:])
			}
			r.metrics()
		})
	}
}

// programs builds the programs and returns their folder. Its command go runs a built program
// for `go run`, because the real one loads all packages first, a hundred times.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), compiler, "build", "-o", dir, "./cmd/agentshim", "./cmd/broker", "./cmd/hookworker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := fmt.Sprintf(`#!/bin/sh
program=%q/${2#./cmd/}
if [ "$1" != run ] || [ ! -x "$program" ]; then exec %q "$@"; fi
trap : INT # as "go run", it ends after its program
shift 2
"$program" "$@" || { echo "exit status $?" >&2; exit 1; }
`, dir, compiler)
	if err := os.WriteFile(dir+"/go", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEveryDocumentWithCommandsIsRun finds documents that are missing in documents. The commands of
// deploy/README.md and the runbooks are for other machines: cmd/e2e compares them with the
// help of the programs.
func TestEveryDocumentWithCommandsIsRun(t *testing.T) {
	for _, doc := range textFiles(t, ".md") {
		if doc == "deploy/README.md" || strings.HasPrefix(doc, "deploy/runbooks/") {
			continue
		}
		isCommand := func(b docBlock) bool { return b.lang == "sh" }
		if slices.ContainsFunc(docBlocks(readDoc(t, doc)), isCommand) && !slices.Contains(documents(), doc) {
			t.Errorf("%s has commands that no test runs; name it in documents", doc)
		}
	}
}

// block runs a block, or compares it with the file that it quotes.
func (r *docRun) block(b docBlock, after []docBlock) {
	r.t.Helper()
	switch {
	case strings.Contains(b.is, "/"):
		if !strings.Contains(readDoc(r.t, b.is), b.text) {
			r.t.Errorf("%s shows a part of %s that the file does not contain:\n%s", r.doc, b.is, b.text)
		}
	case b.lang == "sh" && b.is == "server":
		r.serve(b.text)
	case b.lang == "sh" && b.is == "test":
		if !strings.Contains(readDoc(r.t, ".ci/run"), strings.TrimSpace(b.text)) {
			r.t.Errorf(".ci/run does not run %q, but %s marks it as a test", strings.TrimSpace(b.text), r.doc)
		}
	case b.lang == "sh" && b.is != "" && !isInstalled(b.is):
		r.t.Logf("SKIPPED because %s is not installed:\n%s", b.is, b.text)
	case b.lang == "sh":
		cut := r.cut()
		output := r.run(b.text)
		if len(after) > 0 && after[0].lang == "text" {
			output = r.uncut(b.text, output, after[0].text, cut)
			r.compare(b.text, r.recorded(b.text, output, after[0].text), after[0].text)
		}
	}
}

func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// docRun holds the processes and folders of one document.
type docRun struct {
	t      *testing.T
	doc    string
	path   string // PATH, with the folder of the programs first
	dir    string
	tmp    string
	state  string // state folder of the shims and their daemon
	nats   string // URL of the current broker
	http   string
	broker *exec.Cmd
}

// environ returns the environment for the document's commands, without the settings of
// the caller.
func (r *docRun) environ(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOOKFABRIC_") })
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "XDG_RUNTIME_DIR=") })
	return append(append(env, "HOOKFABRIC_STATE="+r.state, "PATH="+r.path), more...)
}

// run runs a block until it ends, and returns its standard output.
func (r *docRun) run(script string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "sh", "-ec", script)
	cmd.Env = r.environ("HOOKFABRIC_NATS="+r.nats, "HOOKFABRIC_DATA="+r.dir, "TMPDIR="+r.tmp)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s%v\n%s%s", script, err, out, &stderr)
	}
	return string(out)
}

// uncut returns the output of a block as it is on a fast disk. If the broker cannot claim
// the agent's messages within 100 ms, it answers without them, and the next call gets them.
// So uncut repeats the last command of the block as long as the broker counts such calls.
func (r *docRun) uncut(script, output, want string, cut string) string {
	r.t.Helper()
	for now := r.cut(); now != cut && !isPromised(output, want); now = r.cut() {
		cut = now
		lines := strings.SplitAfter(strings.TrimSpace(output), "\n")
		starts := regexp.MustCompile(`(?m)^\S`).FindAllStringIndex(script, -1)
		r.t.Logf("the broker cut a delivery, so the test repeats:\n%s", script)
		output = strings.Join(lines[:len(lines)-1], "") + r.run(script[starts[len(starts)-1][0]:])
	}
	return output
}

// recorded returns the output of a block that reads the record once the record has what the
// document shows: the broker writes a verdict there after it answered.
func (r *docRun) recorded(script, output, want string) string {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); strings.Contains(script, "broker feed") && !isPromised(output, want) && time.Now().Before(end); {
		output = r.run(script)
	}
	return output
}

// cut returns the broker's count of calls that it answered without the agent's messages.
func (r *docRun) cut() string {
	r.t.Helper()
	if r.http == "" {
		return ""
	}
	return string(regexp.MustCompile(`(?m)^hookfabric_deliveries_cut_total .*$`).Find(r.scrape()))
}

// isPromised reports whether a block's output is what the document shows.
func isPromised(output, want string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", "[^\n]*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(strings.TrimSpace(output))
}

func (r *docRun) compare(script, output, want string) {
	r.t.Helper()
	if !isPromised(output, want) {
		r.t.Errorf("%s: the command\n%sprints\n%s\nbut the document shows\n%s", r.doc, script, output, want)
	}
}

// serve starts a block that keeps running. A new broker replaces the previous one.
func (r *docRun) serve(script string) {
	r.t.Helper()
	if strings.Contains(script, "cmd/broker") {
		if r.broker != nil {
			r.stop(r.broker)
		}
		var found []string
		r.broker, found = r.start(script, `bus +(nats://\S+)\n +http +(http://\S+)(?s:.*)Try next`,
			"HOOKFABRIC_LISTEN=127.0.0.1:0", "HOOKFABRIC_HTTP=127.0.0.1:0", "HOOKFABRIC_DATA="+r.dir)
		r.nats, r.http = found[1], found[2]
		return
	}
	if strings.Contains(script, "cmd/agentshim") {
		r.start(script, `msg=serving socket`, "HOOKFABRIC_NATS="+r.nats, "HOOKFABRIC_HTTP=127.0.0.1:0")
		return
	}
	r.start(script, `msg=serving`, "HOOKFABRIC_NATS="+r.nats)
	for strings.Contains(r.run("go run ./cmd/broker status"), "NO WORKER") {
		if err := r.t.Context().Err(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// start starts a process that runs until the end of the test, and waits until its output
// matches pattern.
func (r *docRun) start(script, pattern string, env ...string) (*exec.Cmd, []string) {
	r.t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+script)
	cmd.Env = r.environ(env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // stop signals `go run` and its children
	output, w, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	w.Close()
	r.t.Cleanup(func() { r.stop(cmd) })
	lines, ready, all := bufio.NewReader(output), regexp.MustCompile(pattern), ""
	for {
		line, err := lines.ReadString('\n')
		all += line
		if found := ready.FindStringSubmatch(all); found != nil {
			go io.Copy(io.Discard, lines) // keep the pipe empty, so that the process does not block
			return cmd, found
		}
		if err != nil {
			r.t.Fatalf("%sended before it was ready:\n%s", script, all)
		}
	}
}

// stop stops a process as Ctrl-C does. The exit code of `go run` then has no meaning.
func (r *docRun) stop(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		r.t.Error(err)
	}
	_ = cmd.Wait()
}

// metrics compares the document's table of metrics, if it has one, with those of a broker.
func (r *docRun) metrics() {
	r.t.Helper()
	table := readDoc(r.t, r.doc)
	if !strings.Contains(table, "\n| `hookfabric_") {
		return
	}
	documented := metricNames("(?m)^\\| `(hookfabric_\\w+)`", table)
	var shown []string
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if shown = metricNames(`(?m)^# TYPE (hookfabric_\w+) `, string(r.scrape())); slices.Equal(documented, shown) {
			return // metrics of shadow hooks appear after the verdict
		}
	}
	r.t.Errorf("%s lists the metrics\n%s\nand a broker shows\n%s", r.doc, strings.Join(documented, "\n"), strings.Join(shown, "\n"))
}

func metricNames(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// scrape returns the broker's metrics.
func (r *docRun) scrape() []byte {
	r.t.Helper()
	res, err := http.Get(r.http + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	metrics, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return metrics
}

// TestDocumentsNameFilesThatExist finds files, folders and make targets that a document
// names and that do not exist.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	file := regexp.MustCompile(`(?:\.ci|builtin|bus|cmd|deploy|loadtest|schema|workers)/[\w./-]*`)
	link := regexp.MustCompile(`\]\(([\w./-]+)\)`)
	inFolder := regexp.MustCompile(`(?m)^//\t([\w/]+): (.+\.go)$`) // a folder of doc.go, and files in it
	target := regexp.MustCompile("`make ([a-z]+)`")
	targets := readDoc(t, "Makefile")
	for _, doc := range append(documents(), "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "doc.go", "deploy/README.md", "loadtest/BENCHMARKS.md") {
		text := readDoc(t, doc)
		var named []string
		for _, name := range file.FindAllString(text, -1) {
			named = append(named, strings.TrimRight(name, "./"))
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			named = append(named, path.Join(path.Dir(doc), m[1]))
		}
		for _, m := range inFolder.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsSeq(m[2]) {
				named = append(named, path.Join(m[1], name))
			}
		}
		for _, name := range named {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s, which does not exist; name its new place", doc, name)
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(targets, fmt.Sprintf("\n%s:", m[1])) {
				t.Errorf("%s says `make %s`, which the Makefile does not have", doc, m[1])
			}
		}
	}
}

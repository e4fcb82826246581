package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// The examples are files that a comment opens: the editor's schema, what the
// file shows, the commands that run it, and what it answers to which events.
const (
	deployDir  = "../../deploy/examples"
	schemaLine = "# yaml-language-server: $schema=../../schema/hooks.schema.json\n"
)

var (
	commandLine  = regexp.MustCompile(`(?m)^#   ((?:[A-Z_]+=\S+ )*)(?:go run \./cmd/)?(broker|hookworker|python3) (.*)$`)
	questionLine = regexp.MustCompile(`(?m)^#   (\{.*\}|go run \./cmd/broker [a-z].*)\n(?:#   while it waits: (.*)\n)?#   → (.*)$`)
	fileLine     = regexp.MustCompile(`(?m)^( +file: )/tmp/(\S+)$`)
	answerForm   = regexp.MustCompile(`^(\w+)(?:: (.*)|, and the agent reads: (.*)|, with the input (.*)|, with the output (.*)|, with the effects (.*))?$`)
)

// examples are all of them; none is forgotten.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(deployDir + "/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	return files
}

func TestExamplesAreSound(t *testing.T) {
	valid := hooksSchema(t)
	for _, file := range examples(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := app.ReadConfig(file)
		if err != nil || len(doc.Warnings) > 0 {
			t.Errorf("%s: %v %v", file, err, doc)
		}
		if !strings.HasPrefix(string(text), schemaLine) {
			t.Errorf("%s does not begin with %s", file, schemaLine)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := valid(asText(v)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		readme, err := os.ReadFile("../../deploy/README.md")
		if err != nil || !strings.Contains(string(readme), "`examples/"+filepath.Base(file)+"`") {
			t.Errorf("deploy/README.md does not list %s: %v", file, err)
		}
	}
}

// asText returns a value with its days as texts, which they are in YAML 1.2 and for editors.
func asText(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = asText(value)
		}
	case []any:
		for i, value := range v {
			v[i] = asText(value)
		}
	case time.Time:
		return v.Format(time.DateOnly)
	}
	return v
}

// hooksSchema is the schema that editors use.
func hooksSchema(t *testing.T) func(any) error {
	t.Helper()
	data, err := os.ReadFile("../../schema/hooks.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := schema.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(v any) error { return resolved.Validate(v) }
}

// Each example runs as its comment says, and answers as that promises.
func TestExamplesDoWhatTheirCommentsSay(t *testing.T) {
	t.Parallel()
	for _, file := range examples(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e := runExample(t, string(text))
			questions := questionLine.FindAllStringSubmatch(string(text), -1)
			if len(questions) < 2 || len(questions) != strings.Count(string(text), "→") {
				t.Fatalf("%d questions that can be asked", len(questions))
			}
			for _, q := range questions {
				e.step(q[1], q[2], q[3])
			}
			e.after(filepath.Base(file))
		})
	}
}

// A running example has the processes that its comment starts.
type running struct {
	*testing.T

	url    string // of the bus
	client *client.Client
	server string            // that webhooks ask
	env    map[string]string // of the processes
	file   string            // that the configuration names
}

// runExample starts the processes of an example: the broker, and what else.
func runExample(t *testing.T, text string) *running {
	t.Helper()
	r := &running{T: t, env: map[string]string{}}
	for _, c := range commandLine.FindAllStringSubmatch(text, -1) {
		env := r.variables(c[1])
		switch args := strings.Fields(c[3]); c[2] {
		case "python3":
			r.server = r.serve(env, args[0])
		case "broker":
			if args[0] == "--config" {
				r.url = startBrokerWith(t, env, "--config", r.config(args[1])).url
			}
		case "hookworker":
			startWith(t, env, "hookworker", append(args, "--nats", r.url, "--name", "example")...)
			awaitWorkers(t, connect(t, r.url), "example")
		}
	}
	if r.url == "" {
		t.Fatal("the comment starts no broker")
	}
	r.client = dial(t, r.url)
	return r
}

// serve starts a server of webhooks on a free port, and ends it when the test
// does, however that ends.
func (r *running) serve(env []string, script string) string {
	r.Helper()
	p := startWith(r, env, "sh", "-c", `"$@" & read -r _ <&3; kill $!`, "sh", "python3", r.checkout(script), "--port", "0")
	return p.mustSay(r, 0, `(?m)^listening on (\S+)$`)[1]
}

// config is the configuration of the example or, if that asks a server, has agents
// wait for long or writes a file, a copy with the server's port, a shorter time and
// a file of the test.
func (r *running) config(path string) string {
	r.Helper()
	path = r.checkout(path)
	text, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	changed := strings.Replace(string(text), "debug_delay_seconds: 30", "debug_delay_seconds: 5", 1)
	if r.server != "" {
		changed = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(changed, r.server)
	}
	if file := fileLine.FindStringSubmatch(changed); file != nil {
		r.file = filepath.Join(r.TempDir(), file[2])
		changed = fileLine.ReplaceAllString(changed, "${1}"+r.file)
	}
	if changed == string(text) {
		return path
	}
	return write(r, r.TempDir(), "hooks.yaml", changed)
}

// variables are the environment of a command; files in it are the test's own.
func (r *running) variables(assignments string) []string {
	var env []string
	for kv := range strings.FieldsSeq(assignments) {
		name, value, _ := strings.Cut(kv, "=")
		if file, ok := strings.CutPrefix(value, "/tmp/"); ok {
			value = filepath.Join(r.TempDir(), file)
		}
		r.env[name] = value
		env = append(env, name+"="+value)
	}
	return env
}

// checkout is a path of the checkout for a process that starts elsewhere.
func (r *running) checkout(path string) string {
	r.Helper()
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		r.Fatal(err)
	}
	return abs
}

// after looks at what an example leaves behind.
func (r *running) after(example string) {
	r.Helper()
	switch example {
	case "audit.yaml":
		r.audited(r.env["AUDIT_LOG"], "hook_type", "SessionStart PreToolUse PostToolUse ToolError SessionEnd")
	case "paths.yaml":
		r.audited(r.file, "tool", "Edit Edit Read read_file apply_patch Read Bash")
	}
}

// audited looks at one member of each line of an audit.
func (r *running) audited(path, member, want string) {
	r.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(log)) {
		var e map[string]any
		if err := schema.Unmarshal([]byte(line), &e); err != nil {
			r.Errorf("%s: %v", line, err)
		}
		word, _ := e[member].(string)
		all = append(all, word)
	}
	if got := strings.Join(all, " "); got != want {
		r.Errorf("the audit has %s, want %s", got, want)
	}
}

package install_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/sdktest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { os.Exit(sdktest.Main(m)) }

// TestThePluginForOpenCode runs the plugin's tests, which are in JavaScript, against a daemon that reads
// and answers as the shim does.
func TestThePluginForOpenCode(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on the PATH: the plugin for OpenCode, cmd/agentshim/internal/install/opencode.js, stays untested")
	}
	plugin, err := os.ReadFile("opencode.js")
	if err != nil {
		t.Fatal(err)
	}
	// Only a hanging test reaches the deadline. It is long because programs start slowly on a busy machine.
	for settings, script := range map[string]string{
		`{"agent":"agent/1"}`:    "answers",
		`{"args":["--managed"]}`: "failures",
		`{"timeoutMs":1000}`:     "hang",
		`{"timeoutMs":40000}`:    "lineage",
		`{"unreachable":"allow","daemon":false,"agentshim":"/no/shim"}`: "open",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			daemon := sdktest.NewDaemon(t)
			daemon.Answers(inDialect(t))
			dir := t.TempDir()
			written := strings.Replace(string(plugin), "const SETTINGS = {};", "const SETTINGS = "+settings+";", 1)
			if err := os.WriteFile(filepath.Join(dir, "agentshim.mjs"), []byte(written), 0o600); err != nil {
				t.Fatal(err)
			}
			out := sdktest.Script{Daemon: daemon, Env: []string{"PLUGIN=" + filepath.Join(dir, "agentshim.mjs")},
				Argv: []string{node, "--test", "--test-reporter=tap", path.Join("testdata", "opencode", script+".test.mjs")}}.Run(t)
			if !regexp.MustCompile(`(?m)^# pass [1-9]`).MatchString(out) || !strings.Contains(out, "# skipped 0") {
				t.Errorf("that were not all tests:\n%s", out)
			}
			if asked := daemon.Got(); (asked == "") != (script == "open") || script == "answers" && !strings.Contains(asked, "POST /hook/opencode/tool.execute.before?agent=agent%2F1 ") {
				t.Errorf("the daemon was asked:\n%s", asked)
			}
		})
	}
}

// inDialect returns the answer of OpenCode's dialect for the verdict that the tool's name, or the prompt,
// requests.
func inDialect(t *testing.T) sdktest.Answer {
	d, err := dialect.For("opencode")
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		m, err := dialect.Find(d, path.Base(r.URL.Path))
		if err != nil {
			t.Error(err)
		}
		c, err := d.Decode(dialect.Input{Moment: m, Payload: body})
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		v := verdict(&c.Event)
		said, _, lost := dialect.Express(c.Moment, &v)
		if len(lost) > 0 {
			t.Errorf("%s: %v", body, lost)
		}
		a, err := d.Encode(c, said)
		if err != nil {
			t.Error(err)
		}
		w.Write(a.Stdout)
	}
}

func verdict(e *schema.Event) schema.Verdict {
	facts := fmt.Sprintf("%s of %q in session %q at %q by %q%s: %s %s", e.HookType, e.ToolName, e.SessionID, e.Cwd, e.ToolUseID, e.Labels, e.ToolInput, e.ToolOutput)
	tell := []schema.Injection{{Content: "one"}, {Content: facts, Strategy: schema.UserMessage}}
	switch e.ToolName + strings.ReplaceAll(e.Prompt, "\n", "") {
	case "denied":
		return schema.Verdict{Decision: schema.Deny, Reason: "not this one"}
	case "asked":
		return schema.Verdict{Decision: schema.Ask, Reason: "it costs money"}
	case "rewritten":
		return schema.Verdict{UpdatedInput: jsontext.Value(`{"command":"ls","__proto__":{"x":1}}`)}
	case "told":
		return schema.Verdict{Injections: tell}
	case "replaced":
		return schema.Verdict{UpdatedOutput: jsontext.Value(`"[redacted]"`), Injections: tell[:1]}
	case "patched":
		return schema.Verdict{UpdatedOutput: jsontext.Value(`{"title":"new"}`)}
	}
	return schema.Verdict{}
}

package sdktest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/sdktest"
	"github.com/hookfabric/hookfabric/schema"
)

// TestPythonAgents runs the Python tests of agent loops: with in-process hooks, and with a
// fabric whose answers are in the agent's flags.
func TestPythonAgents(t *testing.T) {
	t.Parallel()
	python := interpreter(t)
	daemon := sdktest.NewDaemon(t)
	daemon.Answers(fabric)
	out := sdktest.Script{Dir: pythonDir, Daemon: daemon, Argv: []string{python, "-B", "-W", "error", "-m", "unittest", "-v", "loop_test", "fabric_test"},
		Env: []string{"PYTHONPATH=.:testdata"}}.Run(t)
	if ran := regexp.MustCompile(`Ran (\d+) tests`).FindStringSubmatch(out); ran == nil || len(ran[1]) < 2 || strings.Contains(out, "skipped") {
		t.Errorf("some tests did not run:\n%s", out)
	}
	if strings.Contains(daemon.Got(), "sk-") {
		t.Error("a request to the daemon contains a model's key")
	}
}

// fabric answers the requests of agent loops.
func fabric(w http.ResponseWriter, r *http.Request, body []byte) {
	format := r.URL.Query().Get("format")
	switch {
	case r.URL.Path == "/v1/needs" && r.URL.Query().Get("agent") == "needs-history":
		fmt.Fprint(w, `{"config_version":2,"history":["BeforeLLMCall"]}`)
	case r.URL.Path == "/v1/needs":
		fmt.Fprint(w, `{"config_version":1,"history":[]}`)
	case r.URL.Path == "/v1/render" && strings.Contains(string(body), "refuse to render"):
		http.Error(w, "agentshim: it cannot be rendered", http.StatusBadRequest)
	case r.URL.Path == "/v1/render":
		_, _ = w.Write(body)
	case r.URL.Path == "/v1/read":
		var answer struct{ Says string }
		_ = schema.Unmarshal([]byte(strings.Replace(string(body), "says", "Says", 1)), &answer)
		fmt.Fprintf(w, `{"role":"assistant","content":"read as %s: %s"}`, format, answer.Says)
	case strings.HasPrefix(r.URL.Path, "/v1/events/"):
		_, _ = w.Write(verdict(body))
	default:
		fmt.Fprint(w, `{}`)
	}
}

// verdict returns the answer that the agent's flags have for an event: by tool, by iteration, or for all.
func verdict(body []byte) []byte {
	var e struct {
		Type      string `json:"hook_type"`
		Tool      string `json:"tool_name"`
		Iteration int    `json:"iteration"`
		Flags     struct {
			Answers map[string]jsontext.Value `json:"answers"`
		} `json:"flags"`
	}
	if err := schema.Unmarshal(body, &e); err != nil {
		return []byte(`{}`)
	}
	for _, key := range []string{e.Type + "/" + e.Tool, fmt.Sprintf("%s/%d", e.Type, e.Iteration), e.Type} {
		if a, ok := e.Flags.Answers[key]; ok {
			if !strings.Contains(string(a), `"decision"`) {
				a = jsontext.Value(strings.Replace(string(a), "{", `{"decision":"continue",`, 1))
			}
			return a
		}
	}
	return []byte(`{"decision":"continue"}`)
}

// TestTheExamplesOfObelixRunUnchanged runs the examples of Obelix's guide with the
// stand-in.
func TestTheExamplesOfObelixRunUnchanged(t *testing.T) {
	t.Parallel()
	out := sdktest.Script{Dir: pythonDir, Daemon: sdktest.NewDaemon(t), Argv: []string{interpreter(t), "-B", "-W", "error", "-m", "unittest", "-v", "obelix_test"},
		Env: []string{"PYTHONPATH=.:testdata"}}.Run(t)
	for example := range 5 {
		if want := fmt.Sprintf("test_%d_", example+1); !strings.Contains(out, want) || strings.Contains(out, "skipped") {
			t.Errorf("%s did not run:\n%s", want, out)
		}
	}
}

package fleet

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

var update = flag.Bool("update", false, "write mix.json anew from the recorded payloads")

// payloads matches the recorded exchanges of runtimes, one folder each.
const payloads = "../../../cmd/agentshim/internal/dialect/testdata/*/*.txtar"

// recordedTools returns the calls with recorded input and output, each once.
func recordedTools(t *testing.T) []*Tool {
	t.Helper()
	files, err := filepath.Glob(payloads)
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded payloads: %v", err)
	}
	var all []*Tool
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n-- event --\n")
		rest, _, _ = strings.Cut(rest, "\n-- ")
		begin := strings.Index(rest, "{\n")
		if begin < 0 {
			continue
		}
		var e schema.Event
		if err := schema.Unmarshal([]byte(rest[begin:]), &e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		tool := &Tool{
			Runtime: filepath.Base(filepath.Dir(file)), Name: e.ToolName, Kind: e.ToolKind,
			Args: compact(t, e.ToolArgs), Input: compact(t, e.ToolInput), Output: compact(t, e.ToolOutput),
		}
		key := tool.Runtime + tool.Name + string(tool.Input)
		if e.HookType != schema.PostToolUse || tool.Kind == "" || len(tool.Input) <= len("{}") || len(tool.Output) == 0 || seen[key] {
			continue
		}
		seen[key] = true
		all = append(all, tool)
	}
	return all
}

func compact(t *testing.T, v jsontext.Value) jsontext.Value {
	t.Helper()
	if v == nil {
		return nil
	}
	v = v.Clone()
	if err := v.Compact(); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheMixIsWhatWasRecorded(t *testing.T) {
	body, err := schema.Marshal(recordedTools(t))
	if err != nil {
		t.Fatal(err)
	}
	text := jsontext.Value(body)
	if err := text.Indent(); err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("mix.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(text), string(recorded)); d != "" {
		t.Errorf("mix.json is not what was recorded (run with -update):\n%s", d)
	}
}

func TestTheMixHasAllClassesAndNoNameInTwo(t *testing.T) {
	m, err := readMix()
	if err != nil {
		t.Fatal(err)
	}
	runtimes, all, of := map[string]bool{}, 0, map[string]class{}
	for c, tools := range m {
		for _, tool := range tools {
			runtimes[tool.Runtime] = true
			all++
			if other, ok := of[tool.Name]; ok && other != c {
				t.Errorf("%s is %s and %s", tool.Name, c, other)
			}
			of[tool.Name] = c
		}
	}
	if all < 20 || len(runtimes) < 6 {
		t.Errorf("%d tools of %d runtimes", all, len(runtimes))
	}
}

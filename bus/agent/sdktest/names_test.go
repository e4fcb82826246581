package sdktest_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/agent/sdktest"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { os.Exit(sdktest.Main(m)) }

// Each client and the workers' Python module have a table of the names that other systems
// use for events. All accept the names that schema accepts.
func TestForeignEventNamesAreEqualInAllLanguages(t *testing.T) {
	want := map[string]string{}
	for _, name := range schema.SeedNames() {
		want[name] = string(schema.EventType(name).Canonical())
	}
	for file, names := range map[string]func(*testing.T, string) map[string]string{
		"../typescript/hookfabric.ts":                    namesInTypeScript,
		"../typescript/hookfabric.mjs":                   namesInTypeScript,
		"../python/hookfabric.py":                        namesInPython("../python", "AgentEvent"),
		"../../../workers/python/hookfabric/__init__.py": namesInPython("../../../workers/python", "HookType"),
	} {
		t.Run(file, func(t *testing.T) {
			if d := cmp.Diff(want, names(t, file)); d != "" {
				t.Errorf("%s takes other names than schema does (-schema +here):\n%s", file, d)
			}
		})
	}
}

// The stand-ins for MassGen and Obelix yield to installed packages with the same
// function. They cannot share it, because users copy each folder alone.
func TestStandInsYieldWithTheSameFunction(t *testing.T) {
	var functions [2]string
	for i, file := range []string{"../python/obelix/__init__.py", "../../../workers/python/massgen/__init__.py"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if functions[i] = regexp.MustCompile(`(?s)\ndef _installed\(\) -> None:\n.*?\n\n\n`).FindString(string(text)); functions[i] == "" {
			t.Fatalf("%s has no function _installed", file)
		}
	}
	if d := cmp.Diff(functions[0], functions[1]); d != "" {
		t.Errorf("the functions differ (-obelix +massgen):\n%s", d)
	}
}

// namesInTypeScript reads the table in the source, because the module does not export it.
func namesInTypeScript(t *testing.T, file string) map[string]string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)const SEEDS\b[^=]*= \{(.*?)\}`).FindSubmatch(text)
	if table == nil {
		t.Fatalf("%s has no table SEEDS", file)
	}
	names := map[string]string{}
	for _, row := range regexp.MustCompile(`(\w+): "(\w+)"`).FindAllSubmatch(table[1], -1) {
		names[string(row[1])] = string(row[2])
	}
	return names
}

// namesInPython asks the module in a folder for the event of each of schema's names.
// Names that it rejects have none.
func namesInPython(folder, class string) func(*testing.T, string) map[string]string {
	const script = `
import json, sys
import hookfabric
names = {}
for name in sys.argv[2:]:
    try:
        names[name] = getattr(hookfabric, sys.argv[1])(name).value
    except ValueError:
        pass
print(json.dumps(names))`
	return func(t *testing.T, file string) map[string]string {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Skipf("no python3 on the PATH: the names in %s stay untested", file)
		}
		if _, err := os.ReadFile(file); err != nil { // so that `go test` notices changes of the file
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), python, append([]string{"-B", "-c", script, class}, schema.SeedNames()...)...)
		cmd.Env, cmd.Stderr = []string{"PYTHONPATH=" + folder}, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		if err := schema.Unmarshal(out, &names); err != nil {
			t.Fatal(err)
		}
		return names
	}
}

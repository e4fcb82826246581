package python

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheStubMatchesTheModules compares the types for type checkers with the Python code.
func TestTheStubMatchesTheModules(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: no python3 on the PATH, so hookfabric/__init__.pyi is not compared with the modules")
	}
	for _, file := range []string{"hookfabric/__init__.py", "hookfabric/__init__.pyi", "hookfabric/_loop.py", "testdata/stub_test.py"} {
		if _, err := os.ReadFile(file); err != nil { // so that `go test` runs this again after a change
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-W", "error", "-m", "unittest", "-v", "stub_test")
	cmd.Env = []string{"PYTHONPATH=.:testdata", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Ran 4 tests") {
		t.Errorf("%v\n%s", err, out)
	}
}

package runnertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree writes files into a new folder; those whose name ends in * are executable.
func Tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if program, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = program, 0o755
		}
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

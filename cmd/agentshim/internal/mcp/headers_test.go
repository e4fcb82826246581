package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
)

func TestHeadersThatOthersCanReadAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o644: true, 0o602: true} {
		if err := os.WriteFile(file, []byte("Authorization: Bearer s\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		h, err := mcp.ReadHeaders(file)
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), file)):
			t.Errorf("mode %v: %v", mode, err)
		case !refused && (err != nil || h.Get("Authorization") != "Bearer s"):
			t.Errorf("mode %v: %v, %v", mode, h, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

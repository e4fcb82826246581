//go:build unix

package channel_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/channel"
)

// A reader does not wait for data from a pipe that has the name of the file.
func TestAPipeInTheFolderHoldsUpNobody(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, channel.FileName), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if content, done := channel.NewReader(dir, &said).Take("echo"); content != "" || done != nil {
		t.Errorf("it is told %q", content)
	}
	if !strings.Contains(said.String(), "not a regular file") {
		t.Errorf("it said %q", said.String())
	}
}

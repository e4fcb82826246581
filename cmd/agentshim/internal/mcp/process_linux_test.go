package mcp_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
)

// Killing a server also kills what it started in other sessions.
func TestKilledServerLeavesNoProcesses(t *testing.T) {
	const stays = `trap "" TERM; while :; do tail -f /dev/null; done`
	for name, script := range map[string]string{
		"a child":                    `setsid sh -c 'exec 3>"$LIFE"; echo >&3; exec tail -f /dev/null >/dev/null 2>&1' & ` + stays,
		"a child without its parent": `( setsid sh -c 'exec 3>"$LIFE"; echo >&3; exec tail -f /dev/null >/dev/null 2>&1' & ) ; ` + stays,
		"a child that ignores TERM":  `setsid sh -c 'trap "" TERM; exec 3>"$LIFE"; echo >&3; tail -f /dev/null >/dev/null 2>&1' & ` + stays,
	} {
		t.Run(name, func(t *testing.T) {
			life := filepath.Join(t.TempDir(), "life")
			t.Setenv("LIFE", life)
			if err := syscall.Mkfifo(life, 0o600); err != nil {
				t.Fatal(err)
			}
			client, input := io.Pipe()
			gone := make(chan error, 1)
			go func() {
				f, err := os.Open(life) // blocks until the child opens it
				if err == nil {
					defer f.Close()
					_, err = f.Read(make([]byte, 1))
				}
				err = errors.Join(err, input.Close()) // ends the server
				_, failed := io.Copy(io.Discard, f)   // blocks until the child is gone
				gone <- errors.Join(err, failed)
			}()
			server := mcp.Process{Args: []string{"sh", "-c", script}, Grace: 20 * time.Millisecond, Stderr: io.Discard}
			code, err := server.Run(t.Context(), mcp.Pipe{Guard: &mcp.Guard{Asker: &fabric{}, Stderr: io.Discard}, FromClient: client, ToClient: io.Discard})
			if err != nil || code != 128+int(syscall.SIGKILL) {
				t.Errorf("the server ended with %d, %v", code, err)
			}
			select {
			case err := <-gone:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("a child of the server still runs")
			}
		})
	}
}

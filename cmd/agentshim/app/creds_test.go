package app

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A command fails at once if it cannot use a file that the command line names. It does not
// continue as if the command line named no file.
func TestAFileThatIsNotThereIsSaidAtOnce(t *testing.T) {
	w := newWorld(t)
	gone := filepath.Join(t.TempDir(), "gone")
	for name, args := range map[string][]string{
		"a daemon":                      {"serve", "--creds", gone},
		"a daemon with an authority":    {"serve", "--tls-ca", gone},
		"a proxy":                       {"mcp", "--creds", gone, "--", "/bin/true"},
		"a proxy with an authority":     {"mcp", "--tls-ca", gone, "--", "/bin/true"},
		"a command that hands over":     {"drain", "--agent", "a", "--creds", gone},
		"one that hands over, with TLS": {"drain", "--agent", "a", "--tls-ca", gone},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.command(args...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			stop := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
			defer stop.Stop()
			if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), gone) {
				t.Errorf("%v: %s", err, &stderr)
			}
		})
	}
	for _, flag := range []string{"--creds", "--tls-ca"} {
		v, stderr, err := w.runs(guardedCall, flag, gone)
		if err != nil || v.Decision != schema.Deny || !strings.Contains(v.Reason, gone) {
			t.Errorf("a hook with %s: %+v, %s, %v", flag, v, stderr, err)
		}
	}
}

//go:build unix

package shimstate

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A pipe in the place of a file must not block the process that opens it.
func TestAPipeIsNoFile(t *testing.T) {
	f := Folder(t.TempDir())
	if err := f.AddHandover(client.Handover{Fabric: "f", Agent: "a", Sequences: []uint64{1}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.AddInjections("a", "pair", []schema.Injection{{Content: "later"}}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(string(f), folder, "f")
	later, err := f.injectionsFile("a", "another")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		policyFile(dir).path, keyFile(dir).path, filepath.Join(dir, unjudgedFile), filepath.Join(dir, "b"+suffix),
		later.path, filepath.Join(string(f), versionsFile),
	} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Policy("f"); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a policy: %v", err)
	}
	if _, err := f.Handovers("b"); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("what was handed over: %v", err)
	}
	if got := f.Injections("a", "another"); got != nil {
		t.Errorf("what waits: %v", got)
	}
	if got := f.Versions(); len(got) != 0 {
		t.Errorf("versions: %v", got)
	}
	r := f.UnjudgedLog("f", "")
	if _, err := r.Oldest("a", 1); err != nil {
		t.Errorf("an empty record: %v", err)
	}
	if err := r.Add(schema.Unjudged{Agent: "a", Event: schema.PreToolUse, Decision: schema.Deny}); err == nil {
		t.Error("a call is on record in a pipe")
	}
}

// A process that gives up waiting for a lock leaves no goroutine behind that waits.
func TestNobodyWaitsForALockWhenItIsTooLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	synctest.Test(t, func(t *testing.T) { // which ends when all that began in it has
		if _, err := lock(path); err == nil || !strings.Contains(err.Error(), "another process has held") {
			t.Errorf("%v", err)
		}
	})
}

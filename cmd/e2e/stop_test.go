package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// patient says that it runs, waits to be let go, and refuses.
const patient = "#!/bin/sh\necho $$ >>\"$0.pids\"\nwhile [ ! -e go ]; do sleep 0.02; done\necho 'not this one' >&2\nexit 2\n"

// startPatient starts a broker with a hook that waits, and one call of it.
func startPatient(t *testing.T) (b *brokerProcess, dir string, pids []int, answers <-chan called) {
	dir = t.TempDir()
	script := write(t, dir, "patient.sh", patient)
	b = startBroker(t, "--config", write(t, dir, "hooks.yaml",
		"presets: []\nhooks:\n  PreToolUse:\n    - {name: patient, type: command, handler: ./patient.sh}\n"))
	answers = askAtOnce(t, dial(t, b.url), 1)
	return b, dir, awaitPids(t, script+".pids", 1), answers
}

func TestStopFinishesCallsUnderWay(t *testing.T) {
	t.Parallel()
	b, dir, _, answers := startPatient(t)
	mark := b.said.mark()
	b.must(t, syscall.SIGTERM)
	b.mustSay(t, mark, "stopping: the broker finishes the calls under way")
	select {
	case a := <-answers:
		t.Fatalf("the call was not waited for: %+v, %v", a.verdict, a.err)
	case <-b.ended:
		t.Fatal("the broker did not wait for the call")
	default:
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.err != nil || a.verdict.Decision != schema.Deny || a.verdict.Reason != "not this one" {
		t.Errorf("the call got %+v, %v; want the hook's refusal", a.verdict, a.err)
	}
	if code, err := b.wait(); err != nil || code != 0 {
		t.Errorf("the broker ended with %d, %v:\n%s", code, err, b.said)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	b, _, pids, _ := startPatient(t)
	mark := b.said.mark()
	b.must(t, syscall.SIGTERM)
	b.mustSay(t, mark, "stopping: the broker finishes the calls under way")
	b.must(t, syscall.SIGINT)
	if code, err := b.wait(); err != nil || code != 130 {
		t.Errorf("the broker ended with %d, %v; want 130", code, err)
	}
	if err := eventually("the hook is gone", func() bool { return allGone(pids) }); err != nil {
		t.Error(err)
	}
}

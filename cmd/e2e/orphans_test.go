package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// endless starts another program, says which processes they are, and waits.
const endless = "#!/bin/sh\nsleep 300 &\necho $$ $! >>\"$0.pids\"\nwait\n"

// TestKilledWorkerLeavesNoProcesses kills a worker while its hooks run, be it
// a process of its own or the broker's.
func TestKilledWorkerLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	for _, pool := range []string{"crew", schema.DefaultPool} {
		t.Run(pool, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := write(t, dir, "endless.sh", endless)
			config := write(t, dir, "hooks.yaml", "presets: []\nhooks:\n  PreToolUse:\n"+
				"    - {name: endless, type: command, handler: ./endless.sh, pool: "+pool+", fail_closed: true}\n")
			b := startBroker(t, "--config", config)
			victim := b.process
			if pool != schema.DefaultPool {
				victim = start(t, "hookworker", "--nats", b.url, "--name", "w0", "--pool", pool, "--hooks", dir)
				awaitWorkers(t, connect(t, b.url), "w0")
			}
			answers := askAtOnce(t, dial(t, b.url), 4)
			pids := awaitPids(t, script+".pids", 4)
			victim.must(t, syscall.SIGKILL)
			if err := eventually(fmt.Sprintf("the processes %v are gone", pids), func() bool { return allGone(pids) }); err != nil {
				t.Error(err)
			}
			for range 4 {
				if a := <-answers; pool == schema.DefaultPool {
					if !errors.Is(a.err, client.ErrUnreachable) {
						t.Errorf("without a broker a call ended with %+v, %v", a.verdict, a.err)
					}
				} else if a.err != nil || a.verdict.Decision != schema.Deny {
					t.Errorf("a call whose worker was killed got %+v, %v; want a deny", a.verdict, a.err)
				}
			}
		})
	}
}

// askAtOnce makes n calls at the same time.
func askAtOnce(t testing.TB, c *client.Client, n int) <-chan called {
	answers := make(chan called, n)
	for range n {
		go func() {
			v, err := ask(context.WithoutCancel(t.Context()), c, "Bash")
			answers <- called{verdict: v, err: err}
		}()
	}
	return answers
}

// awaitPids waits until a file has a number of lines with process ids.
func awaitPids(t testing.TB, path string, lines int) (pids []int) {
	t.Helper()
	var data []byte
	if err := eventually(filepath.Base(path)+" is full", func() bool {
		data, _ = os.ReadFile(path)
		return strings.Count(string(data), "\n") >= lines
	}); err != nil {
		t.Fatal(err)
	}
	for f := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// allGone reports whether none of the processes runs any more. One that its
// new parent has not reaped yet is gone.
func allGone(pids []int) bool {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return false
		}
	}
	return true
}

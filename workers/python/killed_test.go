package python

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

const victimArg = "victim"

// victim is a worker that calls a function that hangs. A test kills it.
func victim(dir, lifeline string) {
	r := New(Options{Watchdog: child.SelfWatchdog(), Environ: append(os.Environ(), "LIFE="+lifeline)})
	hook := hookOf("suite.hangs")
	hook.Env = []string{"LIFE"}
	h, err := r.Load(hook, workers.Site{Dirs: []string{dir}})
	if err == nil {
		_, err = h.Handle(context.Background(), runnertest.Event("Bash"))
	}
	_, _ = io.WriteString(os.Stderr, "the victim was not killed: "+err.Error())
	os.Exit(1)
}

func TestHostsAndTheirChildrenEndWithAKilledWorker(t *testing.T) {
	needPython(t)
	l := runnertest.NewLifeline(t)
	p, err := os.StartProcess("/proc/self/exe", []string{"worker", victimArg, testdata(t)[0], l.Path},
		&os.ProcAttr{Files: []*os.File{nil, os.Stderr, os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	runnertest.Await(t, l.Held(), "the function to be called")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	runnertest.Await(t, l.Gone(), "everything to be gone")
}

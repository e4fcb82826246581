package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// deaf makes the fabric ignore acknowledgement requests.
func (w *world) deaf(deaf bool) {
	w.Lock()
	defer w.Unlock()
	w.Answer = func(verb string, _ *nats.Msg) bool { return deaf && verb == schema.VerbAck }
}

func TestWhatCouldNotBeAcknowledgedIsCutAndAcknowledgedByTheNextShim(t *testing.T) {
	w := newWorld(t)
	w.Put(bustest.Item(1, "one"))
	w.deaf(true)
	if v := w.says(payload); len(v.Injections) != 1 || v.Fabric != "" {
		t.Fatalf("%+v", v)
	}
	first := w.last().ID
	w.endLeases()
	// The fabric does not know that the item was handed over, so it sends the item again.
	w.Lock()
	w.Deaf = true
	w.Unlock()
	if v := w.says(payload); len(v.Injections) != 0 {
		t.Errorf("it was handed over twice: %+v", v)
	}
	if acks := w.last().Acks; !slices.Equal(acks, []string{first}) {
		t.Errorf("the second shim acknowledged %v", acks)
	}
	second := w.last().ID
	w.Lock()
	w.Deaf = false
	w.Unlock()
	if v := w.says(payload); len(v.Injections) != 0 || w.waiting() != 0 {
		t.Errorf("%+v; %d items wait", v, w.waiting())
	}
	if acks := w.last().Acks; !slices.Equal(acks, []string{first, second}) {
		t.Errorf("the third shim acknowledged %v", acks)
	}
	w.says(payload)
	if acks := w.last().Acks; len(acks) != 0 {
		t.Errorf("the fourth shim acknowledged again: %v", acks)
	}
}

func TestWhatWasAcknowledgedAtOnceLeavesNothingOnDisk(t *testing.T) {
	w := newWorld(t)
	w.Put(bustest.Item(1, "one"))
	w.says(payload)
	if entries, err := os.ReadDir(w.state); err != nil || len(entries) != 0 || w.waiting() != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestShimsSideBySideForgetNothing(t *testing.T) {
	w := newWorld(t)
	w.deaf(true)
	const n = 8
	var all sync.WaitGroup
	for i := range uint64(n) {
		w.Put(bustest.Item(i+1, "text"))
		all.Go(func() { w.process("nowhere") })
	}
	all.Wait()
	w.Lock()
	brought := len(w.Leases)
	w.Unlock()
	got, err := shimstate.Folder(w.state).Handovers("a")
	if err != nil || len(got) != 1 || len(got[0].Sequences) != n || len(got[0].Events) != brought {
		t.Errorf("%d events brought %d items; kept: %+v, %v", brought, n, got, err)
	}
	w.endLeases()
	w.deaf(false)
	if v := w.says(payload); len(v.Injections) != 0 || w.waiting() != 0 {
		t.Errorf("%+v; %d items wait", v, w.waiting())
	}
}

func TestAnAnswerThatCouldNotBeWrittenIsNotAcknowledged(t *testing.T) {
	w := newWorld(t)
	w.Put(bustest.Item(1, "one"))
	if code, stderr := w.shim(payload, broken{}); code != 1 || !strings.Contains(stderr, "the pipe is broken") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	w.endLeases()
	if v := w.says(payload); len(v.Injections) != 1 {
		t.Errorf("it was lost: %+v", v)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

func TestAStateFolderThatCanNotBeWrittenFailsNoCall(t *testing.T) {
	w := newWorld(t)
	w.state = filepath.Join(w.state, "file")
	if err := os.WriteFile(w.state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Put(bustest.Item(1, "one"))
	w.deaf(true)
	var stdout bytes.Buffer
	code, stderr := w.shim(payload, &stdout)
	if code != 0 || len(w.read(stdout.Bytes()).Injections) != 1 || !strings.Contains(stderr, "--state") || !strings.Contains(stderr, "may deliver them again") {
		t.Errorf("exit code %d, %s, %s", code, &stdout, stderr)
	}
}

func TestAStateFileThatIsJunkIsSaidAndReplaced(t *testing.T) {
	w := newWorld(t)
	w.deaf(true)
	w.Put(bustest.Item(1, "one"))
	w.says(payload)
	path := filepath.Join(w.state, "shim", "f-test", "a.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte(`{"events":["junk"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.endLeases()
	var stdout bytes.Buffer
	if code, stderr := w.shim(payload, &stdout); code != 0 || !strings.Contains(stderr, "counts as empty") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	w.endLeases()
	if v := w.says(payload); len(v.Injections) != 0 {
		t.Errorf("the file was not replaced: %+v", v)
	}
}

func TestWorkspacesAreUnpackedWhereTheAgentWorks(t *testing.T) {
	w := newWorld(t)
	cwd, elsewhere := t.TempDir(), t.TempDir()
	for _, c := range []struct{ name, flag, cwd, want string }{
		{"in the event's folder", "", cwd, cwd},
		{"where the flag says", elsewhere, cwd, elsewhere},
		{"in a folder that is not there yet", filepath.Join(elsewhere, "new", "one"), cwd, "snapshot"},
		{"nowhere", "", "", "(workspace unavailable: there is no folder"},
		{"in no folder that is relative", "", "here", "(workspace unavailable: there is no folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.endLeases()
			w.Lock()
			w.Items = []schema.Injection{bustest.Item(1, "see hookfabric:temp_workspaces/agent2")}
			w.Workspaces = []schema.Workspace{{Name: "agent2", Path: "hookfabric:temp_workspaces/agent2"}}
			w.Unlock()
			var stdout, stderr bytes.Buffer
			h := newHook(w.url, w.state)
			h.workspaces = c.flag
			h.stdin, h.stdout, h.stderr = strings.NewReader(`{"hook_type":"PostToolUse","agent_id":"a","cwd":"`+c.cwd+`"}`), &stdout, &stderr
			// The snapshot is not valid, so the hook does not unpack it. The test checks
			// only the folder.
			if code := h.run(t.Context()); code != 0 || !strings.Contains(w.read(stdout.Bytes()).Injections[0].Content, c.want) {
				t.Errorf("exit code %d, %s %s", code, &stdout, &stderr)
			}
		})
	}
}

// A hook reports workspace errors on stderr. The daemon logs the rest.
func TestWorkspacesAreInTheLog(t *testing.T) {
	w := newWorld(t)
	var packed bytes.Buffer
	if _, err := snapshot.Pack(t.Context(), t.TempDir(), &packed); err != nil {
		t.Fatal(err)
	}
	waits := func(content string) {
		o := *w.Object(content)
		w.Lock()
		defer w.Unlock()
		w.Items = []schema.Injection{bustest.Item(1, "see hookfabric:temp_workspaces/agent2")}
		w.Workspaces = []schema.Workspace{{Name: "agent2", Path: "hookfabric:temp_workspaces/agent2", Snapshot: o}}
	}
	event := `{"hook_type":"PostToolUse","agent_id":"a","cwd":"` + t.TempDir() + `"}`
	var stdout bytes.Buffer
	waits("no snapshot")
	if code, stderr := w.shim(event, &stdout); code != 0 || !strings.Contains(stderr, `level=WARN msg="a workspace is not available" agent=a workspace=agent2`) ||
		strings.Count(stderr, "\n") != 1 || len(w.read(stdout.Bytes()).Injections) != 1 {
		t.Errorf("exit code %d, %s, %s", code, &stdout, stderr)
	}
	waits(packed.String())
	w.endLeases()
	d := w.daemon()
	if v, stderr, err := w.runs(event); err != nil || stderr != "" || len(v.Injections) != 1 {
		t.Errorf("%+v, %s, %v", v, stderr, err)
	}
	if err := errors.Join(d.Process.Signal(syscall.SIGTERM), d.Wait()); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(d.Stderr); !strings.Contains(said, `level=INFO msg="a workspace of another agent was unpacked" agent=a folder=`) {
		t.Errorf("the daemon said: %s", said)
	}
}

func TestDrainPrintsAllThatWaits(t *testing.T) {
	w := newWorld(t)
	drain := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		args = append([]string{"drain", "--agent", "a", "--nats", w.url, "--state", w.state}, args...)
		code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	if code, stdout, stderr := drain(); code != 0 || stdout != "" || stderr != "" {
		t.Errorf("when nothing waits: %d, %q, %q", code, stdout, stderr)
	}
	w.Put(bustest.Item(1, "one"), bustest.Item(2, "two"))
	if code, stdout, stderr := drain("--session", "s"); code != 0 || stdout != "one\n\ntwo\n" || stderr != "" || w.waiting() != 0 {
		t.Errorf("%d, %q, %q; %d items wait", code, stdout, stderr, w.waiting())
	}
	if s := w.Drains[1].Session; s != "s" {
		t.Errorf("the session is %q", s)
	}
	w.Put(bustest.Item(3, "three"))
	code, stdout, _ := drain("--json")
	var d schema.DrainAnswer
	if err := schema.Unmarshal([]byte(stdout), &d); err != nil || code != 0 || d.Content != "three" {
		t.Errorf("%d, %s, %v", code, stdout, err)
	}
	w.Put(bustest.Item(4, "four"))
	w.deaf(true)
	if code, stdout, stderr := drain(); code != 0 || stdout != "four\n" || !strings.Contains(stderr, "the agent's next agentshim process acknowledges them") {
		t.Errorf("when it cannot be acknowledged: %d, %q, %q", code, stdout, stderr)
	}
	if v := w.says(payload); len(v.Injections) != 0 || w.waiting() != 0 {
		t.Errorf("%+v; %d items wait", v, w.waiting())
	}
}

func TestDrainGoesOnWhileSomethingRemains(t *testing.T) {
	w := newWorld(t)
	w.Put(bustest.Item(1, "one"))
	w.oneByOne(bustest.Item(2, "two"), bustest.Item(3, "three"))
	var stdout, stderr bytes.Buffer
	args := []string{"drain", "--agent", "a", "--nats", w.url, "--state", w.state}
	if code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 || stdout.String() != "one\n\ntwo\n\nthree\n" {
		t.Errorf("%d, %q, %q", code, &stdout, &stderr)
	}
}

// oneByOne makes each drain return one item, and rest after the items that already wait.
func (w *world) oneByOne(rest ...schema.Injection) {
	w.Lock()
	defer w.Unlock()
	w.Answer = func(verb string, m *nats.Msg) bool {
		if verb != schema.VerbDrain {
			return false
		}
		var r schema.DrainRequest
		if err := schema.Unmarshal(m.Data, &r); err != nil {
			w.t.Error(err)
		}
		if len(w.Items) == 0 && len(rest) > 0 {
			w.Items, rest = rest[:1], rest[1:]
		}
		d := w.Drain(r.EventID)
		d.Remaining = len(rest)
		bustest.Respond(m, d)
		return true
	}
}

// Drain does not repeat what an earlier shim handed over, and continues with what comes
// after it.
func TestDrainGoesOnAfterWhatWasHandedOverBefore(t *testing.T) {
	w := newWorld(t)
	w.Put(bustest.Item(1, "one"))
	w.deaf(true)
	w.says(payload)
	w.endLeases()
	w.Lock()
	w.Deaf = true // acknowledgements inside questions are lost as well
	w.Unlock()
	w.oneByOne(bustest.Item(2, "two"), bustest.Item(3, "three"))
	var stdout, stderr bytes.Buffer
	args := []string{"drain", "--agent", "a", "--nats", w.url, "--state", w.state}
	if code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 || stdout.String() != "two\n\nthree\n" || w.waiting() != 0 {
		t.Errorf("%d, %q, %q; %d items wait", code, &stdout, &stderr, w.waiting())
	}
}

func TestDrainSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no agent":      {[]string{"drain"}, 2, "write --agent ID"},
		"no time":       {[]string{"drain", "--agent", "a", "--timeout", "0s"}, 2, "write a positive duration"},
		"an argument":   {[]string{"drain", "a"}, 2, `unknown argument "a"`},
		"nobody there":  {[]string{"drain", "--agent", "a", "--nats", "nats://127.0.0.1:1", "--timeout", "200ms"}, 1, "unreachable"},
		"a long name":   {[]string{"drain", "--agent", strings.Repeat("a", 200), "--nats", w.url}, 1, "agent"},
		"broken stdout": {[]string{"drain", "--agent", "a", "--nats", w.url, "--json"}, 1, "the pipe is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := Main(t.Context(), append(c.args, "--state", w.state), strings.NewReader(""), broken{}, &stderr); code != c.code || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("%d, %s", code, &stderr)
			}
		})
	}
}

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

// A spread is a fabric on a NATS server of its own, whose configuration
// changes while it is asked.
type spread struct {
	dir     string
	data    string // of the NATS server
	nats    *process
	url     string
	brokers []*brokerProcess
	workers []*process
	nc      *nats.Conn
	// says is what verdicts by a version must say.
	says map[uint64]sight
}

// startSpread starts brokers, the first with mark 1 as its file, and workers
// for the pool "crew".
func startSpread(t testing.TB, brokers, workers int) *spread {
	t.Helper()
	s := &spread{dir: t.TempDir(), data: t.TempDir(), says: map[uint64]sight{1: promise(1, 1)}}
	s.nats = start(t, "nats-server", "-dir", s.data)
	s.url = s.nats.mustSay(t, 0, `ready (nats://\S+)`)[1]
	s.brokers = append(s.brokers, startBroker(t, "--nats", s.url, "--config", s.file(t, "first.yaml", mark(1))))
	for range brokers - 1 {
		s.brokers = append(s.brokers, startBroker(t, "--nats", s.url))
	}
	s.nc = connect(t, s.url)
	for i := range workers {
		s.workers = append(s.workers, s.worker(t, i))
	}
	s.awaitWorkers(t)
	return s
}

// startServer starts the NATS server again, on its data and its address.
func (s *spread) startServer(t testing.TB) {
	t.Helper()
	s.nats = start(t, "nats-server", "-dir", s.data, "-listen", strings.TrimPrefix(s.url, "nats://"))
	s.nats.mustSay(t, 0, `ready nats://`)
}

// node is the part of a broker's id among the nodes that says which process it is.
func (b *brokerProcess) node() string { return fmt.Sprintf("-%d-", b.cmd.Process.Pid) }

func (s *spread) worker(t testing.TB, i int) *process {
	t.Helper()
	return start(t, "gohooks", "-nats", s.url, "-name", fmt.Sprintf("w%d", i))
}

// awaitWorkers waits until every broker knows all workers.
func (s *spread) awaitWorkers(t testing.TB) {
	t.Helper()
	var names []string
	for i := range s.workers {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	awaitWorkers(t, s.nc, names...)
}

// file writes a file of the fabric's operators, atomically.
func (s *spread) file(t testing.TB, name, text string) string {
	t.Helper()
	half := write(t, s.dir, name+".new", text)
	path := strings.TrimSuffix(half, ".new")
	if err := os.Rename(half, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// operate runs an operator's command in the fabric and returns it when it has
// ended with that exit code.
func (s *spread) operate(t testing.TB, code int, args ...string) *process {
	t.Helper()
	p := start(t, "broker", append(args, "--nats", s.url)...)
	if got, err := p.wait(); err != nil || got != code {
		t.Fatalf("broker %s ended with %d, %v; want %d; it said:\n%s", strings.Join(args, " "), got, err, code, p.said)
	}
	return p
}

// answerOf is the answer that a command has printed with --json.
func answerOf(t testing.TB, p *process) (a schema.ConfigAnswer) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^\{.*\}$`).FindString(p.said.String())
	if err := schema.Unmarshal([]byte(line), &a); err != nil {
		t.Fatalf("%s printed no answer: %v\n%s", p.name, err, p.said)
	}
	return a
}

// apply makes mark n the active configuration and returns its version.
func (s *spread) apply(t testing.TB, n int) uint64 {
	t.Helper()
	return s.changed(t, n, "apply", s.file(t, fmt.Sprintf("v%d.yaml", n), mark(n)), "--json")
}

// changed runs a command after which mark n is active, and returns its version.
func (s *spread) changed(t testing.TB, n int, args ...string) uint64 {
	t.Helper()
	a := answerOf(t, s.operate(t, 0, args...))
	if !a.Changed || len(a.Problems) > 0 {
		t.Fatalf("broker %s changed nothing: %+v", strings.Join(args, " "), a)
	}
	s.says[a.Version] = promise(a.Version, n)
	return a.Version
}

// proposed reports whether a version is about to become active.
func (s *spread) proposed(t testing.TB) bool { return s.pointer(t).Proposed.Version > 0 }

// A pointer is what the fabric keeps of its versions, as far as tests look.
type pointer struct {
	Version  uint64 `json:"version"`
	Proposed struct {
		Version uint64 `json:"version"`
		By      string `json:"by"`
	} `json:"proposed"`
}

func (s *spread) pointer(t testing.TB) (p pointer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(ctx, state.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	e, err := kv.Get(ctx, "current")
	if err == nil {
		err = schema.Unmarshal(e.Value(), &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

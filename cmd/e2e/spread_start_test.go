package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestFileOfABrokerThatJoins starts brokers with the file that others use, with
// another one, and alone.
func TestFileOfABrokerThatJoins(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 1, 1)
	first := s.file(t, "first.yaml", mark(1))
	other := s.file(t, "other.yaml", mark(2))
	s.brokers = append(s.brokers, startBroker(t, "--nats", s.url, "--config", first))
	s.checkBoth(t, 1)
	s.checkRefusedStart(t, other)
	s.checkBoth(t, 1)
	s.brokers = append(s.brokers, startBroker(t, "--nats", s.url, "--config", other, "--replace"))
	s.says[2] = promise(2, 2)
	s.checkBoth(t, 2)
	for _, b := range s.brokers {
		b.must(t, syscall.SIGTERM)
		if code, err := b.wait(); err != nil || code != 0 {
			t.Fatalf("it ended with %d, %v:\n%s", code, err, b.said)
		}
	}
	startBroker(t, "--nats", s.url, "--config", s.file(t, "third.yaml", mark(3)))
	s.says[3] = promise(3, 3)
	s.awaitWorkers(t)
	s.checkBoth(t, 3)
}

// checkRefusedStart fails the test unless a broker with that file ends with a
// sentence that says what to do.
func (s *spread) checkRefusedStart(t testing.TB, path string) {
	t.Helper()
	p := start(t, "broker", append([]string{"--nats", s.url, "--config", path}, anyPort...)...)
	code, err := p.wait()
	said := p.said.String()
	if err != nil || code != 1 || !strings.Contains(said, path+" differs from version 1") || !strings.Contains(said, "--replace") {
		t.Errorf("a broker with another file ended with %d, %v:\n%s", code, err, said)
	}
}

// TestFileOfABrokerThatIsAloneAfterACrash starts a broker with another file when
// those before it were killed: it has to wait until their leases have lapsed.
func TestFileOfABrokerThatIsAloneAfterACrash(t *testing.T) {
	t.Parallel()
	if !long() {
		t.Skip("A BROKER THAT IS ALONE AFTER A CRASH IS NOT TESTED: it waits for leases to lapse, which takes HOOKFABRIC_LONG=1")
	}
	s := startSpread(t, 2, 1)
	for _, b := range s.brokers {
		b.kill()
	}
	path := s.file(t, "other.yaml", mark(2))
	p := start(t, "broker", append([]string{"--nats", s.url, "--config", path}, anyPort...)...)
	const ready = `(?m)^  hooks +4 \(configuration version 2\)$`
	if _, err := p.await(0, ready); err != nil {
		p.mustSay(t, 0, ready) // a lease takes nearly as long as patience lasts
	}
	s.says[2] = promise(2, 2)
	s.awaitWorkers(t)
	s.checkBoth(t, 2)
}

// TestBrokersThatStartTogether starts brokers of an empty fabric at the same
// time. One whose file lost refuses, and one without a file never takes the
// place of one with.
func TestBrokersThatStartTogether(t *testing.T) {
	t.Parallel()
	for range rounds() + 4 {
		_, url := startNATS(t)
		s := &spread{dir: t.TempDir(), url: url}
		files := [][]string{{"--config", s.file(t, "v1.yaml", mark(1))}, {"--config", s.file(t, "v2.yaml", mark(2))}, nil, nil}
		var starting []*process
		for _, args := range files {
			starting = append(starting, start(t, "broker", slices.Concat([]string{"--nats", url}, args, anyPort)...))
		}
		var ready []int
		for i, p := range starting {
			if _, err := p.await(0, `(?m)^  hooks +\d+ `); err == nil {
				ready = append(ready, i)
			} else if code, err := p.wait(); err != nil || code != 1 || !strings.Contains(p.said.String(), "--replace") {
				t.Errorf("a broker that was not ready ended with %d, %v:\n%s", code, err, p.said)
			}
		}
		s.nc = connect(t, url)
		t.Logf("ready are %v", ready)
		won := slices.DeleteFunc(slices.Clone(ready), func(i int) bool { return i > 1 })
		if len(won) > 1 || len(ready)-len(won) != 2 {
			t.Errorf("of two brokers with files of their own and two without, ready are %v", ready)
		}
		var cfg schema.Config
		shown := s.operate(t, 0, "config", "show", "--json").said.String()
		if err := schema.Unmarshal([]byte(shown), &cfg); err != nil {
			t.Fatalf("%v: %s", err, shown)
		}
		// Where one without a file came first, both files are refused.
		first := slices.IndexFunc(cfg.Hooks, func(h schema.Hook) bool { return h.Preset == "" })
		if len(won) == 0 && first >= 0 || len(won) == 1 && (first < 0 || cfg.Hooks[first].Name != names(won[0] + 1)[0]) {
			t.Errorf("ready are %v, and active is %s", ready, shown)
		}
		for _, p := range starting {
			p.kill()
		}
	}
}

package e2e_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// TestAStoppedBrokerBlamesNoNode: a broker that was stopped itself for two
// seconds has heard no beats in that time. That is its own silence, not its
// workers'.
func TestAStoppedBrokerBlamesNoNode(t *testing.T) {
	c := startCrew(t, goKind, true)
	l := startLoad(t, dial(t, c.broker.url))
	l.more(t, 50)
	mark := c.broker.said.mark()
	c.broker.must(t, syscall.SIGSTOP)
	hear(t, c.nc, "w0", int(2000/schema.BeatEvery.Milliseconds()))
	c.broker.must(t, syscall.SIGCONT)
	l.more(t, 200)
	s := count(l.finish())
	t.Logf("stopped for 8 beats: %v", s)
	s.checkVerdicts(t)
	s.checkUnanswered(t)
	if n := strings.Count(c.broker.said.String()[mark:], "hooks run again"); n > 0 {
		t.Errorf("%d times it took a worker for lost, and ran hooks again", n)
	}
	st, err := status(c.nc)
	if err != nil || !awake(&st, "w0") || !awake(&st, "w1") {
		t.Errorf("the broker does not see its workers: %+v, %v", st.Pools, err)
	}
	c.stop(t)
}

// hear waits for n beats of a worker.
func hear(t testing.TB, nc *nats.Conn, worker string, n int) {
	t.Helper()
	subject, err := bus.BeatSubject("crew", worker)
	if err != nil {
		t.Fatal(err)
	}
	beats := make(chan *nats.Msg, n)
	sub, err := nc.ChanSubscribe(subject, beats)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for range n {
		<-beats
	}
}

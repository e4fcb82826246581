package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// A cluster is three brokers that keep everything together, and two workers.
type cluster struct {
	brokers [3]*brokerProcess
	args    [3][]string
	url     string // of all of them
}

// startCluster starts one, with hooks that wait.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	secret := write(t, dir, "secret", "the servers of this cluster know it\n")
	ports := bustest.FreeAddresses(t, 6)
	routes, listen, urls := ports[:3], ports[3:], []string{}
	c := &cluster{}
	config := goKind.config(t, dir)
	var started [3]*process
	for i := range c.brokers {
		urls = append(urls, "nats://"+listen[i])
		c.args[i] = []string{"--listen", listen[i], "--data", t.TempDir(), "--config", config, "--name", fmt.Sprint("b", i),
			"--cluster-name", "test", "--cluster-listen", routes[i], "--cluster-secret", secret, "--routes", "nats-route://" + strings.Join(routes, ",nats-route://")}
		started[i] = start(t, "broker", append([]string{"--http", "127.0.0.1:0"}, c.args[i]...)...)
	}
	for i, p := range started { // none is ready before another one is there
		c.brokers[i] = ready(t, p)
	}
	c.url = strings.Join(urls, ",")
	for i := range 2 {
		goKind.worker(t, c.url, fmt.Sprint("w", i), dir)
	}
	c.settled(t)
	return c
}

// settled waits until every broker is ready and knows both workers.
func (c *cluster) settled(t *testing.T) {
	t.Helper()
	for _, b := range c.brokers {
		nc := connect(t, b.url)
		awaitWorkers(t, nc, "w0", "w1")
		if err := eventually("the broker is ready", func() bool {
			code, _, err := fetch(b.http + "/readyz")
			return err == nil && code == http.StatusOK
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// leads returns the broker whose server leads the stream of items. Without a leader, new items must wait.
func (c *cluster) leads(t *testing.T) int {
	t.Helper()
	js, err := jetstream.New(connect(t, c.url))
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), "KV_hook_injections")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index([]string{"b0", "b1", "b2"}, st.CachedInfo().Cluster.Leader)
	if n := st.CachedInfo().Config.Replicas; at < 0 || n != 3 {
		t.Fatalf("it is kept %d times, and led by %q", n, st.CachedInfo().Cluster.Leader)
	}
	return at
}

// missed waits until a broker shows that one of the others does not keep its copies any more.
func (c *cluster) missed(t *testing.T, by int) {
	t.Helper()
	const missing = `hookfabric_stream_copies{state="unheard",stream="KV_hook_injections"} 1`
	if err := eventually("a copy is missed", func() bool {
		_, body, err := fetch(c.brokers[by].http + "/metrics")
		return err == nil && strings.Contains(body, missing)
	}); err != nil {
		t.Error(err)
	}
}

// loads asks through clients of all brokers.
func (c *cluster) loads(t *testing.T) (all []*load) {
	for range c.brokers {
		all = append(all, startLoad(t, dial(t, c.url)))
	}
	return all
}

// finished are the calls of all loads.
func finished(all []*load) (calls []called) {
	for _, l := range all {
		calls = append(calls, l.finish()...)
	}
	return calls
}

// A teller says something to an agent again and again, each until it is accepted.
type teller struct {
	agent    string
	stop     context.CancelFunc
	done     sync.WaitGroup
	accepted map[string]bool // by key; read only once done
	// longest is the longest time until an item was accepted, answer the longest time of a request with an
	// answer. lost counts requests without an answer because the broker was killed, cut those whose
	// connection was dropped.
	longest, answer time.Duration
	lost, cut       int
	asking          atomic.Pointer[context.CancelFunc] // ends the request under way
}

// refusedIn is when a request to store something is refused at the latest, with a
// second for a machine that does much else.
const refusedIn = 11 * time.Second

// tellers are how many tell at the same time: not all of their requests are at the
// broker that dies.
const tellers = 4

// startTellers has some tell until each is checked.
func startTellers(t *testing.T, url string) (all []*teller) {
	t.Helper()
	for i := range tellers {
		all = append(all, startTeller(t, url, fmt.Sprint("listener", i)))
	}
	return all
}

// startTeller tells an agent until check.
func startTeller(t *testing.T, url, agent string) *teller {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &teller{agent: agent, stop: stop, accepted: map[string]bool{}}
	nc, err := bus.Connect(t.Context(), bus.Options{URL: url, Name: "teller", OnState: s.connected})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	s.done.Go(func() {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ctx.Err() == nil; n++ {
			s.tell(t, nc, n)
			<-tick.C
		}
	})
	t.Cleanup(func() { stop(); s.done.Wait() })
	return s
}

// connected follows the state of the connection. An answer that was on its way when the connection
// broke does not come.
func (s *teller) connected(is bool) {
	if stop := s.asking.Load(); !is && stop != nil {
		(*stop)()
	}
}

// tell repeats one request until it is accepted.
func (s *teller) tell(t *testing.T, nc *nats.Conn, n uint64) {
	began := time.Now()
	request := schema.InjectRequest{Content: fmt.Sprint("number ", n), Producer: "teller", Number: n}
	for time.Since(began) < 2*patience {
		var receipt schema.Receipt
		asked := time.Now()
		ctx, stop := context.WithTimeout(context.Background(), refusedIn)
		s.asking.Store(&stop)
		err := controlWithin(ctx, nc, "inject", s.agent, request, &receipt)
		stop()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			s.lost++
		case errors.Is(err, context.Canceled):
			s.cut++
		default:
			s.answer = max(s.answer, time.Since(asked))
		}
		if err == nil {
			s.accepted[receipt.Key] = true
			s.longest = max(s.longest, time.Since(began))
			return
		}
	}
	t.Errorf("number %d was not accepted within %v", n, 2*patience)
}

// check fails the test if something that was accepted is not there, or if more
// requests were not answered than may be lost.
func (s *teller) check(t *testing.T, url string, lost int) {
	t.Helper()
	s.stop()
	s.done.Wait()
	nc := connect(t, url)
	var pending schema.PendingAnswer
	// A broker that did not accept the last item itself learns of it a moment later.
	err := eventually("all that was accepted waits", func() bool {
		if err := control(nc, "pending", s.agent, schema.PendingRequest{Limit: 10_000}, &pending); err != nil {
			return false
		}
		for _, it := range pending.Items {
			delete(s.accepted, it.Key)
		}
		return len(s.accepted) == 0
	})
	if err != nil {
		t.Errorf("%v: %v are lost", err, slices.Sorted(maps.Keys(s.accepted)))
	}
	t.Logf("%d injections accepted; the longest wait for one %v, for an answer %v; %d requests without one, and %d more whose connection broke", pending.Total,
		s.longest.Round(time.Millisecond), s.answer.Round(time.Millisecond), s.lost, s.cut)
	if s.lost > lost {
		t.Errorf("%d requests were not answered within %v", s.lost, refusedIn)
	}
}

// control makes a control request about an agent.
func control(nc *nats.Conn, verb, agent string, request, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), refusedIn)
	defer cancel()
	return controlWithin(ctx, nc, verb, agent, request, answer)
}

// controlWithin makes one as long as ctx lasts.
func controlWithin(ctx context.Context, nc *nats.Conn, verb, agent string, request, answer any) error {
	subject, err := bus.ControlSubject(verb, agent)
	if err != nil {
		return err
	}
	data, err := schema.Marshal(request)
	if err != nil {
		return err
	}
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		return err
	}
	if said := m.Header.Get(schema.HeaderServiceError); said != "" {
		return fmt.Errorf("refused: %s", said)
	}
	return schema.Unmarshal(m.Data, answer)
}

// TestKilledClusterBrokers kills each broker of a cluster under load and starts it
// again: calls are answered in time, no fail-closed one is let through, and nothing
// that was accepted is lost.
func TestKilledClusterBrokers(t *testing.T) {
	t.Parallel()
	if !long() {
		t.Skip("NOT EACH BROKER OF A CLUSTER IS KILLED: that takes HOOKFABRIC_LONG=1; the tests of loadtest/internal/chaos kill one, and cut one off")
	}
	c := startCluster(t)
	first := c.leads(t)
	for _, i := range []int{first, (first + 1) % 3, (first + 2) % 3} {
		loads, tells := c.loads(t), startTellers(t, c.url)
		for _, l := range loads {
			l.more(t, 100)
		}
		at := time.Now()
		c.brokers[i].must(t, syscall.SIGKILL)
		if _, err := c.brokers[i].wait(); err != nil {
			t.Fatal(err)
		}
		for _, l := range loads {
			l.more(t, 300)
		}
		c.missed(t, (i+1)%3)
		down := time.Since(at)
		c.brokers[i] = startBroker(t, c.args[i]...)
		for _, l := range loads {
			l.more(t, 200)
		}
		s := count(finished(loads))
		t.Logf("broker %d was killed, and gone for %v: %v", i, down.Round(time.Millisecond), s)
		s.checkNeverAllowed(t)
		if n := len(s.failed); n > 0 {
			t.Errorf("%d calls got no verdict, the first: %v", n, s.failed[0].err)
		}
		if s.slowest.took >= deadline {
			t.Errorf("a call took %v, longer than its deadline", s.slowest.took)
		}
		c.settled(t)
		for _, s := range tells {
			s.check(t, c.url, 1)
		}
	}
}

// TestRollingRestart stops and starts one broker of a cluster after the other under
// load. No call may notice.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	loads, tells := c.loads(t), startTellers(t, c.url)
	for i := range c.brokers {
		for _, l := range loads {
			l.more(t, 100)
		}
		began := time.Now()
		c.brokers[i].must(t, syscall.SIGTERM)
		if code, err := c.brokers[i].wait(); err != nil || code != 0 {
			t.Fatalf("the broker ended with %d, %v:\n%s", code, err, c.brokers[i].said)
		}
		stopped := time.Since(began)
		c.brokers[i] = startBroker(t, c.args[i]...)
		t.Logf("broker %d stopped within %v and was ready again after %v", i, stopped.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		c.settled(t)
	}
	s := count(finished(loads))
	t.Logf("all: %v", s)
	s.check(t)
	for tool, outcomes := range s.outcomes {
		for outcome, n := range outcomes {
			if outcome != schema.OK {
				t.Errorf("%d hooks of %s calls ended with %s", n, tool, outcome)
			}
		}
	}
	for _, s := range tells {
		s.check(t, c.url, 0)
	}
}

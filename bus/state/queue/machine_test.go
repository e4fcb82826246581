package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"pgregory.net/rapid"
)

// errDead is what the steps of a process say that is dead.
var errDead = errors.New("dead")

// A node is a process with a queue, which may die at a step.
type node struct {
	t     *testing.T
	s     *server.Server
	o     queue.Options
	queue *queue.Queue

	mu   sync.Mutex // guards what follows
	kill queue.Step // where it dies next; empty: nowhere
	dead bool
	gone []string // keys that expired, as the watch says
}

func newNode(t *testing.T, s *server.Server, o queue.Options) *node {
	n := &node{t: t, s: s, o: o}
	n.start()
	return n
}

func (n *node) start() {
	n.t.Helper()
	o := n.o
	o.Step, o.Watch.Expired = n.step, n.expired
	q, err := queue.Open(context.Background(), bustest.JetStream(n.t, n.s), o)
	if err != nil {
		n.t.Fatal(err)
	}
	n.queue = q
}

func (n *node) step(s queue.Step) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead = n.dead || s == n.kill; n.dead {
		return errDead
	}
	return nil
}

func (n *node) expired(it *schema.Item) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone = append(n.gone, it.Key)
}

// takeExpired returns the keys that expired since it was last asked.
func (n *node) takeExpired() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	gone := n.gone
	n.gone = nil
	return gone
}

// dieAt has the node die at the step.
func (n *node) dieAt(s queue.Step) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kill = s
}

// died reports whether the node is dead, and restarts it.
func (n *node) died() bool {
	n.mu.Lock()
	dead := n.dead
	n.kill = ""
	n.mu.Unlock()
	if dead {
		n.restart()
	}
	return dead
}

// restart ends the process without a word and starts another one.
func (n *node) restart() {
	n.close()
	n.mu.Lock()
	n.dead, n.kill = false, ""
	n.mu.Unlock()
	n.start()
}

func (n *node) close() {
	n.t.Helper()
	if err := n.queue.Close(context.Background()); err != nil {
		n.t.Error(err)
	}
}

// A machine plays with two nodes, and holds what they do to the model.
type machine struct {
	t      *testing.T
	nodes  []*node
	model  *model
	start  time.Time
	events int
}

// TestNothingIsLostComesTwiceOrOutOfOrder plays everything that can happen to
// items in every order, deaths of processes included.
func TestNothingIsLostComesTwiceOrOutOfOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var failed any
		synctest.Test(t, func(t *testing.T) {
			s := bustest.Start(t)
			m := &machine{t: t, start: time.Now(), model: newModel(2 * time.Minute)}
			for range 2 {
				m.nodes = append(m.nodes, newNode(t, s, queue.Options{Dedup: m.model.window}))
			}
			defer func() {
				failed = recover() // it must not leave the bubble before all has ended
				for _, n := range m.nodes {
					n.close()
				}
			}()
			r.Repeat(map[string]func(*rapid.T){
				"enqueue": m.enqueue, "claim": m.claim, "parallel": m.parallel, "ack": m.ack, "hold": m.hold,
				"withdraw": m.withdraw, "wait": m.wait, "restart": m.restart, "": m.settle,
			})
			m.drain(r)
		})
		switch {
		case failed == nil:
		case r.Failed():
			panic(failed) // a line of its own: rapid takes what panics at the same one for the same
		default:
			panic(failed) // the play was shortened so far that it says nothing
		}
	})
}

// settle lets all nodes hear of everything.
func (m *machine) settle(r *rapid.T) {
	synctest.Wait()
	m.model.now = time.Since(m.start)
	for _, n := range m.nodes {
		for _, key := range n.takeExpired() {
			if why := m.model.expired(m.model.find(key)); why != "" {
				r.Fatalf("%s expired: %s", key, why)
			}
		}
	}
	m.silently(r)
}

// silently looks for what expired without a word, since who ended it died before
// it could say so.
func (m *machine) silently(r *rapid.T) {
	var there []string
	for _, p := range m.nodes[0].queue.Pending("", 0).Items {
		there = append(there, p.Key)
	}
	for _, it := range m.model.items {
		if over, _ := m.model.over(it); it.ended == "" && over && !slices.Contains(there, it.key) {
			if why := m.model.expired(it); why != "" {
				r.Fatalf("%s is gone: %s", it.key, why)
			}
		}
	}
}

func (m *machine) node(r *rapid.T) *node { return rapid.SampledFrom(m.nodes).Draw(r, "node") }

// dying has the node die at one of the steps, or not.
func (m *machine) dying(r *rapid.T, n *node, steps ...queue.Step) queue.Step {
	at := rapid.SampledFrom(append(slices.Repeat([]queue.Step{""}, 4), steps...)).Draw(r, "dies at")
	n.dieAt(at)
	return at
}

// after restarts a dead node, and reports whether it was dead.
func (m *machine) after(r *rapid.T, n *node) bool {
	if !n.died() {
		return false
	}
	m.model.reopened()
	m.settle(r)
	return true
}

func (m *machine) enqueue(r *rapid.T) {
	n := m.node(r)
	next := &modelItem{number: rapid.Uint64Range(1, 12).Draw(r, "number"), source: rapid.SampledFrom([]string{"human", "peer"}).Draw(r, "source")}
	it := &schema.Item{Producer: "p", Number: next.number, Source: next.source, Strategy: schema.ToolResult, Content: "text"}
	switch to := rapid.SampledFrom([]string{"a", "b", "a", "s1", "s2", "all"}).Draw(r, "to"); to {
	case "a", "b":
		it.Scope.Agent, next.agent = to, to
		next.key = "a-" + to + ".p."
	case "all":
		next.key = "all.p."
	default:
		it.Scope.Session, next.session = to, to
		next.key = "s-" + to + ".p."
	}
	next.key += fmt.Sprint(next.number)
	next.tool = rapid.SampledFrom([]string{"", "", "X", "Y"}).Draw(r, "matcher")
	it.Matcher = next.tool
	it.LateJoiners = rapid.Bool().Draw(r, "late joiners") && next.agent == ""
	next.late = it.LateJoiners
	if wait := rapid.SampledFrom([]time.Duration{0, 0, 30 * time.Second, 100 * time.Second}).Draw(r, "expiry"); wait > 0 || next.agent == "" {
		it.Expiry = schema.Duration(max(wait, 30*time.Second))
		next.expires = m.model.now + time.Duration(it.Expiry)
	}
	m.dying(r, n, queue.StepEnqueueBegun, queue.StepEnqueueStored)
	receipt, err := n.queue.Enqueue(m.t.Context(), it)
	if m.after(r, n) { // who asked asks again
		receipt, err = n.queue.Enqueue(m.t.Context(), it)
		if err == nil && receipt.Duplicate && m.model.find(next.key) == nil {
			receipt.Duplicate = false
		}
	}
	tooOld := errors.Is(err, queue.ErrTooOld)
	if err != nil && !tooOld {
		r.Fatal(err)
	}
	if why := m.model.receipt(next, receipt, tooOld); why != "" {
		r.Fatalf("%s: %+v, %v: %s", next.key, receipt, err, why)
	}
	if next.sequence = receipt.Sequence; !receipt.Duplicate && !tooOld {
		m.model.accepted(next)
	}
}

// draw makes a claim.
func (m *machine) draw(r *rapid.T) modelClaim {
	c := modelClaim{
		agent: rapid.SampledFrom([]string{"a", "b"}).Draw(r, "agent"), session: rapid.SampledFrom([]string{"s1", "s1", "s2"}).Draw(r, "session"),
		tool: rapid.SampledFrom([]string{"X", "Y", "", "any"}).Draw(r, "tool"),
	}
	if a := m.model.agents[c.agent]; a != nil && len(a.leases) > 0 && rapid.Bool().Draw(r, "an event again") {
		c.event = rapid.SampledFrom(a.leases).Draw(r, "lease").event
		return c
	}
	m.events++
	c.event = fmt.Sprint("e", m.events)
	return c
}

// ask puts a claim to the node. What the model makes of it is another matter.
func (m *machine) ask(n *node, c modelClaim, acks []string) ([]uint64, error) {
	q := &queue.Claim{Routing: schema.Routing{Agent: c.agent, Session: c.session, Tool: c.tool, ID: c.event}, Acks: acks, Any: c.tool == "any"}
	if q.Any {
		q.Tool = ""
	}
	got, err := n.queue.Claim(m.t.Context(), q)
	var sequences []uint64
	for _, it := range got.Items {
		sequences = append(sequences, it.Sequence)
	}
	return sequences, err
}

func (m *machine) found(r *rapid.T, sequences []uint64) (items []*modelItem) {
	for _, seq := range sequences {
		it := m.model.bySequence(seq)
		if it == nil {
			r.Fatalf("%d went out, which was never accepted", seq)
		}
		items = append(items, it)
	}
	return items
}

func (m *machine) claim(r *rapid.T) {
	n, c := m.node(r), m.draw(r)
	a := m.model.seen(c.agent, n.queue.Last()+1)
	var acks []string
	for _, l := range a.leases {
		if l.event != c.event && rapid.Bool().Draw(r, "acknowledged") {
			acks = append(acks, l.event)
		}
	}
	at := m.dying(r, n, queue.StepClaimBegun, queue.StepClaimStored, queue.StepAckStored)
	got, err := m.ask(n, c, acks)
	if at == queue.StepClaimStored || at == queue.StepAckStored {
		m.model.ack(a, acks) // which is stored with it: before the node that follows ends what this one did not
	}
	if m.after(r, n) { // the shim asks once more, another broker
		got, err = m.ask(m.node(r), c, acks)
	}
	if err != nil {
		r.Fatal(err)
	}
	m.model.ack(a, acks)
	if why := m.model.claimed(a, c, m.found(r, got)); why != "" {
		r.Fatalf("%+v got %v: %s", c, got, why)
	}
}

// parallel has events of one agent ask at the same time.
func (m *machine) parallel(r *rapid.T) {
	first := m.draw(r)
	a := m.model.seen(first.agent, m.nodes[0].queue.Last()+1)
	claims, got, errs := make([]modelClaim, 4), make([][]uint64, 4), make([]error, 4)
	var wg sync.WaitGroup
	for i := range claims {
		claims[i] = first
		m.events++
		claims[i].event = fmt.Sprint("e", m.events)
		wg.Go(func() { got[i], errs[i] = m.ask(m.nodes[i%2], claims[i], nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
	// One was first and took all that it could; then nothing is left for the others.
	slices.SortFunc(got, func(x, y []uint64) int { return len(y) - len(x) })
	for i, sequences := range got {
		if i > 0 && len(sequences) > 0 {
			r.Fatalf("events at the same time got %v", got)
		}
	}
	m.settle(r)
	for i := range claims {
		if err := m.whoGot(r, a, claims[i]); err != "" {
			r.Fatal(err)
		}
	}
}

// whoGot asks the same event again, and holds that to the model if it has something.
func (m *machine) whoGot(r *rapid.T, a *modelAgent, c modelClaim) string {
	leased := ""
	for _, p := range m.nodes[0].queue.Pending(c.agent, 0).Items {
		if p.Event == c.event {
			leased = p.Event
		}
	}
	if leased == "" {
		return ""
	}
	got, err := m.ask(m.nodes[1], c, nil)
	if err != nil {
		return err.Error()
	}
	return m.model.claimed(a, c, m.found(r, got))
}

func (m *machine) ack(r *rapid.T) {
	n := m.node(r)
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "agent")
	a := m.model.agents[name]
	if a == nil || len(a.leases) == 0 {
		r.Skip("nothing is on its way")
	}
	event := rapid.SampledFrom(a.leases).Draw(r, "lease").event
	at := m.dying(r, n, queue.StepAckBegun, queue.StepAckStored, queue.StepEndBegun, queue.StepEndStored)
	err := n.queue.Ack(m.t.Context(), name, []string{event})
	synctest.Wait() // what comes after is done in the background
	if err == nil || at == queue.StepAckStored {
		m.model.ack(a, []string{event}) // before the node that follows ends what this one did not
	}
	if dead := m.after(r, n); err != nil && !dead {
		r.Fatal(err)
	}
}

func (m *machine) hold(r *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "agent")
	a := m.model.agents[name]
	if a == nil || len(a.leases) == 0 {
		r.Skip("nothing is on its way")
	}
	event := rapid.SampledFrom(a.leases).Draw(r, "lease").event
	if err := m.node(r).queue.Hold(m.t.Context(), name, []string{event}); err != nil {
		r.Fatal(err)
	}
	m.model.renew(a, event)
}

func (m *machine) withdraw(r *rapid.T) {
	if len(m.model.items) == 0 {
		r.Skip("nothing was accepted")
	}
	n, it := m.node(r), rapid.SampledFrom(m.model.items).Draw(r, "item")
	at := m.dying(r, n, queue.StepEndBegun, queue.StepEndStored)
	answer, err := n.queue.Withdraw(m.t.Context(), it.key)
	if dead := m.after(r, n); dead || errors.Is(err, queue.ErrNotFound) {
		switch {
		case !dead && (it.ended == "" || m.model.now-it.endedAt < m.model.window-20*time.Second):
			r.Fatalf("%s: %v", it.key, err)
		case dead && (it.agent != "" || at == queue.StepEndStored):
			it.ended, it.endedAt = schema.Withdrawn, m.model.now
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	perhaps, surely := m.model.leased(it)
	switch {
	case it.ended != "" && answer.State != it.ended,
		it.ended == "" && answer.State == schema.Leased && !perhaps,
		it.ended == "" && answer.State == schema.Withdrawn && surely && it.agent != "",
		it.ended == "" && answer.State != schema.Withdrawn && answer.State != schema.Leased:
		r.Fatalf("%s, which %q: %+v", it.key, it.ended, answer)
	}
	if it.ended == "" && answer.State == schema.Withdrawn {
		it.ended, it.endedAt = schema.Withdrawn, m.model.now
	}
}

func (m *machine) wait(r *rapid.T) {
	<-time.After(rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, 40 * time.Second, 70 * time.Second}).Draw(r, "time"))
}

func (m *machine) restart(r *rapid.T) {
	m.node(r).restart()
	m.model.reopened()
}

// drain lets all leases end, and then takes out and acknowledges all that is
// left, in every session: the model says whether something is missing.
func (m *machine) drain(r *rapid.T) {
	<-time.After(3 * queue.LeaseFor)
	m.settle(r)
	for _, agent := range []string{"a", "b"} {
		for i, session := range []string{"s1", "s2", "s1"} {
			n := m.nodes[i%2]
			m.events++
			c := modelClaim{agent: agent, session: session, tool: "any", event: fmt.Sprint("e", m.events)}
			a := m.model.seen(agent, n.queue.Last()+1)
			got, err := m.ask(n, c, nil)
			if err != nil {
				r.Fatal(err)
			}
			if why := m.model.claimed(a, c, m.found(r, got)); why != "" {
				r.Fatalf("at the end %+v got %v: %s", c, got, why)
			}
			if err := n.queue.Ack(m.t.Context(), agent, []string{c.event}); err != nil {
				r.Fatal(err)
			}
			m.model.ack(a, []string{c.event})
			m.settle(r)
		}
	}
	<-time.After(10 * time.Second)
	m.settle(r)
	for _, n := range m.nodes {
		for _, p := range n.queue.Pending("", 0).Items {
			if it := m.model.find(p.Key); it == nil || it.ended != "" || it.agent != "" {
				r.Fatalf("%+v waits at the end", p)
			}
		}
	}
}

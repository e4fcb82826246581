package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// memory replaces all stores, as simply as possible: one agent "a" and the items that wait for it.
// It records its calls.
type memory struct {
	mu     sync.Mutex
	items  []*schema.Item
	last   uint64
	leases map[string][]*schema.Item // by event
	peers  schema.Peers
	before map[string]schema.Peers // by event
	round  *schema.Round
	leads  *schema.Round     // the leader's round, if it differs
	texts  map[string]string // of objects, by digest
	counts map[string]int    // of answers, by agent
	calls  []string
	// gone: nothing can be reached; slow: it answers only when it is given up.
	gone, slow bool
	// stale means that the rounds known here are old.
	stale bool
	// spent means that no agent may answer any more, and full that the queue accepts nothing.
	spent, full bool
	// warning is the last event that brought the warning of the round without the queue.
	warning   string
	warningAt time.Time
}

func newMemory() *memory {
	return &memory{leases: map[string][]*schema.Item{}, before: map[string]schema.Peers{}, texts: map[string]string{}, counts: map[string]int{}}
}

// all returns the memory in the form that the aggregator uses.
func (m *memory) all() stores.Memory {
	return stores.Memory{Queue: m, Rounds: fakeRounds{m}, Sessions: fakeSessions{m}, Objects: m}
}

// called notes a call, and fails it if the memory cannot be reached.
func (m *memory) called(ctx context.Context, what string, args ...any) error {
	m.mu.Lock()
	m.calls = append(m.calls, fmt.Sprintf(what, args...))
	gone, slow := m.gone, m.slow
	m.mu.Unlock()
	if slow {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
	}
	if gone {
		return queue.ErrUnavailable
	}
	return nil
}

// recorded returns the calls so far that begin with a prefix.
func (m *memory) recorded(prefix string) (some []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		if strings.HasPrefix(c, prefix) {
			some = append(some, c)
		}
	}
	return some
}

// put puts an item into the queue behind the others.
func (m *memory) put(it *schema.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	it.Sequence = m.last
	if it.Strategy == "" {
		it.Strategy = schema.ToolResult
	}
	m.items = append(m.items, it)
}

func (m *memory) Seen(_, _, _ string) {}

func (m *memory) Due(agent, _, _ string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return agent == "a" && len(m.items) > 0
}

func (m *memory) Holds(_, event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.leases[event]) > 0
}

func (m *memory) Claim(ctx context.Context, c *queue.Claim) (queue.Claimed, error) {
	if err := m.called(ctx, "claim %s acks %v any %v", c.ID, c.Acks, c.Any); err != nil {
		return queue.Claimed{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range c.Acks {
		delete(m.leases, e)
	}
	if again, ok := m.leases[c.ID]; ok {
		return queue.Claimed{Items: again, Peers: m.before[c.ID], Again: true}, nil
	}
	before := m.peers
	for range 2 { // as if another broker had been faster the first time
		m.peers = before
		m.peers.Seen = maps.Clone(before.Seen)
		taken := c.Choose(&m.peers, slices.Clone(m.items))
		m.leases[c.ID] = taken
	}
	m.before[c.ID] = before
	m.items = slices.DeleteFunc(m.items, func(it *schema.Item) bool { return slices.Contains(m.leases[c.ID], it) })
	return queue.Claimed{Items: m.leases[c.ID], Peers: before}, nil
}

func (m *memory) Ack(ctx context.Context, agent string, events []string) error {
	if err := m.called(ctx, "ack %s %v", agent, events); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		delete(m.leases, e)
	}
	return nil
}

func (m *memory) Hold(ctx context.Context, agent string, events []string) error {
	return m.called(ctx, "hold %s %v", agent, events)
}

func (m *memory) Release(ctx context.Context, agent string, events []string) error {
	return m.called(ctx, "release %s %v", agent, events)
}

func (m *memory) Note(ctx context.Context, agent, _ string, change func(*schema.Peers)) error {
	if err := m.called(ctx, "note %s", agent); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.peers)
	return nil
}

func (m *memory) Peers(_, _ string) schema.Peers {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers
}

func (m *memory) Enqueue(ctx context.Context, it *schema.Item) (schema.Receipt, error) {
	if err := m.called(ctx, "enqueue %v %s %d", it.Scope, it.Producer, it.Number); err != nil {
		return schema.Receipt{}, err
	}
	m.mu.Lock()
	if m.full {
		defer m.mu.Unlock()
		return schema.Receipt{}, queue.ErrFull
	}
	for _, other := range m.items {
		if other.Producer == it.Producer && other.Number == it.Number && other.Name == it.Name {
			defer m.mu.Unlock()
			return schema.Receipt{Key: "k", Sequence: other.Sequence, Duplicate: true, State: schema.Queued}, nil
		}
	}
	m.mu.Unlock()
	m.put(it)
	return schema.Receipt{Key: "k", Sequence: it.Sequence, State: schema.Queued}, nil
}

func (m *memory) Withdraw(ctx context.Context, key string) (schema.WithdrawAnswer, error) {
	if err := m.called(ctx, "withdraw %s", key); err != nil {
		return schema.WithdrawAnswer{}, err
	}
	if !strings.Contains(key, ".") {
		return schema.WithdrawAnswer{}, fmt.Errorf("%w: %s", queue.ErrKey, key)
	}
	return schema.WithdrawAnswer{}, fmt.Errorf("%w: %s", queue.ErrNotFound, key)
}

func (m *memory) Current(ctx context.Context) error { return m.called(ctx, "current") }

func (m *memory) Pending(string, int) schema.PendingAnswer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return schema.PendingAnswer{Items: []schema.PendingItem{}, Total: len(m.items)}
}

func (m *memory) Names(_, _, digest string) bool { return m.texts[digest] != "" && digest != "secret" }

func (m *memory) Last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *memory) Stats() queue.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := queue.Stats{Pending: map[string]int{}, Oldest: 3 * time.Second, Lag: time.Second, Remembered: time.Hour}
	for _, it := range m.items {
		st.Pending[it.Source]++
	}
	return st
}

func (m *memory) Allows(it *schema.Item) error {
	if m.spent {
		return fmt.Errorf("%w: %s", queue.ErrAllowance, it.Author)
	}
	return nil
}

func (m *memory) PutWithin(ctx context.Context, r io.Reader, _ int) (schema.Object, error) {
	text, err := io.ReadAll(r)
	digest := fmt.Sprintf("sha256-%d", len(text))
	m.texts[digest] = string(text)
	return schema.Object{Digest: digest, Size: int64(len(text))}, errors.Join(err, m.called(ctx, "store %d", len(text)))
}

func (m *memory) Has(ctx context.Context, o schema.Object) error {
	if m.texts[o.Digest] == "" {
		return fmt.Errorf("%w: %s", objects.ErrNotFound, o.Digest)
	}
	return m.called(ctx, "has %s", o.Digest)
}

func (m *memory) Part(ctx context.Context, digest string, offset int64) ([]byte, int64, error) {
	if err := m.called(ctx, "part %s %d", digest, offset); err != nil {
		return nil, 0, err
	}
	text := m.texts[digest]
	return []byte(text[offset:min(offset+1<<20, int64(len(text)))]), int64(len(text)), nil
}

type fakeRounds struct{ *memory }

func (m fakeRounds) Get(agent string) (schema.Round, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round == nil || agent != "a" {
		return schema.Round{}, false
	}
	return *m.round, true
}

// Latest returns the leader's round, which may differ from the mirror's.
func (m fakeRounds) Latest(ctx context.Context, agent string) (schema.Round, bool, error) {
	if err := m.called(ctx, "latest %s", agent); err != nil {
		return schema.Round{}, false, rounds.ErrUnavailable
	}
	if m.leads != nil {
		return *m.leads, true, nil
	}
	r, ok := m.Get(agent)
	return r, ok, nil
}

func (m fakeRounds) Start(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, error) {
	if req.Grace != nil && *req.Grace < 0 {
		return schema.Round{}, fmt.Errorf("%w: the grace is negative", rounds.ErrInvalid)
	}
	m.mu.Lock()
	m.round = &schema.Round{Agent: agent, Start: m.last + 100, Initial: req.Initial}
	m.mu.Unlock()
	return *m.round, m.called(ctx, "start %s", agent)
}

func (m fakeRounds) WrapUp(ctx context.Context, agent string, _ *schema.RoundRequest) (schema.Round, bool, error) {
	m.mu.Lock()
	m.round = &schema.Round{Agent: agent, Start: 7, WrapUp: true}
	m.mu.Unlock()
	return *m.round, true, m.called(ctx, "wrapup %s", agent)
}

func (m fakeRounds) Warned(ctx context.Context, agent string, start uint64) error {
	m.mu.Lock()
	m.round.Warned = m.round.Start == start
	m.mu.Unlock()
	return m.called(ctx, "warned %s %d", agent, start)
}

func (m fakeRounds) Warn(_ context.Context, _ string, w rounds.Warning) (may, first bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round == nil || m.round.Start != w.Start || m.round.Warned || m.warning != "" && m.warning != w.Event && time.Since(m.warningAt) < w.Lease {
		return false, false, nil
	}
	first = m.warning == ""
	m.warning, m.warningAt = w.Event, time.Now()
	return true, first, nil
}

func (m fakeRounds) Warning(string) (event string, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.warning, time.Since(m.warningAt)
}

func (m fakeRounds) Acked(ctx context.Context, agent string, events []string) error {
	m.mu.Lock()
	begins, start := slices.Contains(events, m.warning), m.round.Start
	m.mu.Unlock()
	if !begins {
		return nil
	}
	return m.Warned(ctx, agent, start)
}

func (m fakeRounds) Denied(ctx context.Context, agent string, start uint64, event string) (schema.Round, error) {
	if err := m.called(ctx, "denied %s %d %s", agent, start, event); err != nil {
		return schema.Round{}, rounds.ErrUnavailable
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.round.Denials++
	m.round.Terminate = m.round.Denials >= rounds.MaxDenials
	return *m.round, nil
}

func (m fakeRounds) Passed(ctx context.Context, agent string) error {
	return m.called(ctx, "passed %s", agent)
}

func (m fakeRounds) Ready() error {
	if m.stale {
		return rounds.ErrUnavailable
	}
	return nil
}

func (m fakeRounds) SoftDue() []schema.Round {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round == nil || !m.round.SoftDue() {
		return nil
	}
	return []schema.Round{*m.round}
}

func (m fakeRounds) Blocked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.round == nil || !m.round.Blocked() {
		return 0
	}
	return 1
}

type fakeSessions struct{ *memory }

func (m fakeSessions) Name(ctx context.Context, _, agent, label string) (sessions.Named, error) {
	if strings.HasPrefix(label, "taken") {
		return sessions.Named{}, fmt.Errorf("%w: %s", sessions.ErrTaken, label)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if label == "" {
		m.counts[agent]++
		label = fmt.Sprintf("agent1.%d", m.counts[agent])
	}
	return sessions.Named{Name: "agent1", Label: label}, nil
}

func (m fakeSessions) Seen(string, string) {}

func (m fakeSessions) TakesPart(_ context.Context, _, session string) (bool, error) {
	return session != "foreign", nil
}

func (m fakeSessions) IsAgent(_ context.Context, id string) (bool, error) { return id == "alice", nil }

func (m fakeSessions) Room(context.Context, int) error { return nil }

func (m fakeSessions) Describe(a sessions.Agent) {
	if a.Ended {
		_ = m.called(context.Background(), "describe %s %s ended", a.Agent, a.Session)
		return
	}
	_ = m.called(context.Background(), "describe %s %s %s", a.Agent, a.Session, strings.TrimSpace(a.Runtime+" "+a.Version+" "+a.Host))
}

func (m fakeSessions) Lately(_ context.Context, host string) ([]schema.AgentStatus, bool, error) {
	all := make([]schema.AgentStatus, schema.MaxAgents+1)
	for i := range all {
		all[i] = schema.AgentStatus{Agent: fmt.Sprint("a", i), Host: host}
	}
	return all, true, nil
}

// stages makes the built-in stages.
func stages(h *schema.Hook) (any, error) { return builtin.Stage(h) }

// stage returns a hook that is a stage.
func stage(handler string, t schema.EventType, change ...func(*schema.Hook)) schema.Hook {
	return hook(handler, append([]func(*schema.Hook){at(t)}, change...)...)
}

// remembering runs an aggregator that has a memory.
func remembering(t *testing.T, m *memory, lib library, hooks ...schema.Hook) *fabric {
	t.Helper()
	return startWith(t, aggregator.Options{Memory: m.all(), Stages: stages}, lib, hooks...)
}

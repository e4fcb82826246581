package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// knownByID is how long the daemon remembers a call with a runtime's own id, and knownByHash one that its
	// content identifies: the other hooks of its moment follow at once.
	knownByID   = 5 * time.Minute
	knownByHash = 3 * time.Second
	// passesFor is how long a verdict that lets a call pass is shared: an operator may freeze the agent.
	passesFor  = 3 * time.Second
	maxFlights = 10_000 // limits the number of calls that the daemon remembers
)

// flights merges all deliveries of one moment of one call into one event: layers of a configuration, general
// and special hooks, or a hook and an MCP proxy may deliver it. All get the decision and the rewrites, and one
// of them the items. Deliveries share a verdict only if they are about the same call, and until a verdict of
// another version of the configuration or of the freezes has come.
type flights struct {
	judge decide.Asker
	now   func() time.Time

	mu     sync.Mutex           // guards what follows
	byKey  map[string][]*flight // one for each agent and content
	byPair map[string][]*flight // the moments before and after a call
	pairs  pairing
	queues [2][]*flight  // completed flights, matched by content and by id, oldest first; including dropped ones
	origin decide.Origin // of the latest verdict
	shared sharing
}

// sharing counts deliveries that got the verdict of another one, by how they were matched.
type sharing struct{ byID, byContent int64 }

// A flight is one event that is being judged, or was judged recently.
type flight struct {
	key   string
	pair  string // empty: unknown
	q     facts
	byID  bool
	again bool          // a repeated question means that its first answer was lost
	until time.Time     // when forget drops it; zero: it is being judged
	fresh time.Time     // when its verdict is no longer shared
	from  decide.Origin // of its verdict
	over  chan struct{} // closed when it is judged
	j     decide.Judgement
	input [2]digest // of the call, and of its rewritten input
	seen  *sighting // the same call, for proxies; nil: no proxy can see it
	// holder is the delivery that hands over the items; nil: the next one does.
	holder *delivery
	handed bool
}

type digest [sha256.Size]byte

// facts are the parts of the question that a flight keeps.
type facts struct {
	agent, session, tool string
	kind                 schema.EventType
	output               digest
}

func newFlights(j decide.Asker) *flights {
	return &flights{judge: j, now: time.Now, byKey: map[string][]*flight{}, byPair: map[string][]*flight{}}
}

// ackTime limits the handover. A resident judge acknowledges in the background.
const ackTime = 100 * time.Millisecond

// A delivery is one of the ways that a call reached the daemon.
type delivery struct {
	all    *flights
	borrow bool // the agent's id is a guess
	// mute means that the hook's delivery of the same call hands over the injections.
	mute bool
	// asks is called with the agent's id before the call is judged; nil: no callback.
	asks   func(agent string)
	flight *flight
	v      *schema.Verdict
}

// Ask has a call judged, together with its other deliveries.
func (d *delivery) Ask(ctx context.Context, q decide.Question) decide.Judgement {
	if d.asks != nil {
		d.asks(q.Event.AgentID)
	}
	d.all.endTurn(q.Event)
	if q.Key == "" || q.Unreadable != nil {
		j := d.all.judge.Ask(ctx, q)
		d.v = j.Verdict
		return j
	}
	for {
		f, first := d.all.board(&q, d)
		if first {
			d.all.fly(ctx, f, q)
			return d.share(f)
		}
		select {
		case <-f.over:
		case <-ctx.Done():
			return d.all.judge.Ask(ctx, q) // which returns the verdict for a call that ran out of time
		}
		if f.j.Unjudged == nil {
			return d.share(f)
		}
		// The first delivery failed or had less time, so this one may ask.
		if ctx.Err() != nil {
			return d.all.judge.Ask(ctx, q)
		}
	}
}

// endTurn notifies the pairing when an agent's turn ends or begins, but not a subagent's.
func (all *flights) endTurn(e *schema.Event) {
	switch e.HookType {
	case schema.UserPromptSubmit, schema.BeforeFinalResponse, schema.QueryEnd, schema.SessionEnd:
		if e.Labels["subagent"] == "" {
			all.mu.Lock()
			defer all.mu.Unlock()
			all.pairs.endTurn(e, all.now())
		}
	}
}

// fly has a flight judged, and ends it even if the judge panics.
func (all *flights) fly(ctx context.Context, f *flight, q decide.Question) {
	j := decide.Judgement{Verdict: &schema.Verdict{}, Unjudged: errBroke}
	defer func() { all.land(f, j) }()
	j = all.judge.Ask(ctx, q)
}

var errBroke = errors.New("the daemon failed while it judged the call")

// board returns the flight of a question; first: the caller must have it judged.
func (all *flights) board(q *decide.Question, d *delivery) (f *flight, first bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget()
	seen := all.pairs.meet(q, d.borrow, all.now())
	all.pairs.end(q)
	key, pair := q.Event.Runtime+"\x00"+q.Key, ""
	if q.Pair != "" {
		pair = q.Event.Runtime + "\x00" + q.Pair
	}
	if d.borrow && seen == nil {
		all.adopt(q, pair)
	}
	e := q.Event
	input := digestOf(e.ToolInput)
	fact := facts{agent: e.AgentID, session: e.SessionID, tool: e.ToolName, kind: e.HookType,
		output: digestOf(slices.Concat(e.ToolOutput, e.Message, []byte("\x00"+e.Error+"\x00"+e.Prompt)))}
	for _, f := range slices.Clone(all.byKey[key]) {
		switch {
		case !f.is(&fact, input):
			continue
		case all.stale(f):
			all.drop(f) // the call is judged again, but its items are not handed over again
			d.mute = d.mute || f.handed || f.holder != nil && !q.Again
			continue
		case q.ByID:
			all.shared.byID++
		default:
			all.shared.byContent++
		}
		return f, false
	}
	// Where both sides ask, only the runtime's own hook hands over what hooks inject.
	d.mute = d.mute || seen != nil && (q.Event.HookType == schema.PreToolUse || seen.unclear || q.Event.ToolName != q.Apart)
	if d.mute {
		event := *q.Event
		event.Mute = true
		q.Event = &event
	}
	f = &flight{key: key, pair: pair, q: fact, byID: q.ByID, again: q.Again, over: make(chan struct{}), input: [2]digest{input, input}}
	all.pairs.note(q, f, all.now())
	all.endOthers(f)
	all.byKey[key] = append(all.byKey[key], f)
	if pair != "" {
		all.byPair[pair] = append(all.byPair[pair], f)
	}
	return f, true
}

// stale reports whether a flight's verdict may no longer hold. The caller holds the lock.
func (all *flights) stale(f *flight) bool {
	return !f.until.IsZero() && (f.from != all.origin || !f.fresh.After(all.now()))
}

// adopt assigns a call to the one agent whose own hook asked about it. The caller holds the lock.
func (all *flights) adopt(q *decide.Question, pair string) {
	known := all.byPair[pair]
	if pair == "" || !q.ByID || len(known) == 0 {
		return
	}
	for _, f := range known {
		if f.q.agent != known[0].q.agent || f.q.tool != q.Event.ToolName {
			return
		}
	}
	event := *q.Event
	event.AgentID, event.SessionID = known[0].q.agent, known[0].q.session
	q.Event = &event
}

// is reports whether a delivery is of the flight's call. The caller holds the lock.
func (f *flight) is(q *facts, input digest) bool {
	switch {
	case q.tool != f.q.tool || q.agent != f.q.agent:
		return false
	case after(f.q.kind) && after(q.kind):
		// A call's result looks different to its hook and to a proxy.
		return f.byID || q.output == f.q.output && input == f.input[0]
	}
	return q.kind == f.q.kind && slices.Contains(f.input[:], input) && q.output == f.q.output
}

func after(t schema.EventType) bool { return t == schema.PostToolUse || t == schema.ToolError }

// endOthers drops the flights before a call that is over, and those after a call that begins again.
func (all *flights) endOthers(f *flight) {
	for _, other := range slices.Clone(all.byPair[f.pair]) {
		if other.q.agent == f.q.agent && !other.until.IsZero() && after(other.q.kind) != after(f.q.kind) {
			all.drop(other)
		}
	}
}

func (all *flights) land(f *flight, j decide.Judgement) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f.j = j
	if j.Verdict.UpdatedInput != nil {
		f.input[1] = digestOf(j.Verdict.UpdatedInput)
		if f.seen != nil {
			f.seen.input[1] = f.input[1]
		}
	}
	if f.seen != nil {
		all.pairs.decide(f.seen, j.Verdict.Decision, all.now())
	}
	queue := &all.queues[0]
	f.until = all.now().Add(knownByHash)
	if f.byID {
		queue = &all.queues[1]
		f.until = all.now().Add(knownByID)
	}
	f.fresh = f.until
	if t := f.q.kind; t.Blocking() != schema.None && !t.Blocks(j.Verdict.Decision) {
		f.fresh = all.now().Add(passesFor)
	}
	close(f.over)
	if j.Unjudged != nil {
		all.drop(f)
		return
	}
	f.from = decide.OriginOf(j.Verdict)
	all.origin = f.from
	*queue = append(*queue, f)
	if len(*queue) > maxFlights {
		all.drop((*queue)[0])
		*queue = (*queue)[1:]
	}
}

// forget drops the flights that have expired. The caller holds the lock.
func (all *flights) forget() {
	now := all.now()
	for i := range all.queues {
		queue := all.queues[i]
		for len(queue) > 0 && !queue[0].until.After(now) {
			all.drop(queue[0])
			queue[0] = nil
			queue = queue[1:]
		}
		all.queues[i] = queue
	}
}

func (all *flights) drop(f *flight) {
	without(all.byKey, f.key, f)
	without(all.byPair, f.pair, f)
}

func without(m map[string][]*flight, key string, f *flight) {
	left := slices.DeleteFunc(m[key], func(g *flight) bool { return g == f })
	if len(left) == 0 {
		delete(m, key)
		return
	}
	m[key] = left
}

func (d *delivery) share(f *flight) decide.Judgement {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.flight = f
	v := *f.j.Verdict
	if !d.mute && (f.holder == nil || f.again) && !f.handed {
		f.holder = d
	} else if f.holder != d {
		v.Injections, v.Restart, v.Workspaces, v.Effects = nil, nil, nil, nil
	}
	d.v = &v
	return decide.Judgement{Verdict: &v, Unjudged: f.j.Unjudged}
}

func (d *delivery) holds() bool {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	return d.flight == nil || d.flight.holder == d
}

// A deliveryStore returns the stored injections for a call to only one delivery of the call.
type deliveryStore struct {
	session.Store
	d *delivery
}

func (s deliveryStore) Injections(agent, pair string) []schema.Injection {
	if !s.d.holds() {
		return nil
	}
	return s.Store.Injections(agent, pair)
}

// written records that the agent has the answer.
func (d *delivery) written(ctx context.Context) {
	if d.v == nil {
		return
	}
	if f := d.flight; f != nil {
		d.all.mu.Lock()
		mine := f.holder == d || f.again && !f.handed
		if mine {
			f.handed = true
			left := *f.j.Verdict
			left.Injections, left.Restart, left.Workspaces, left.Effects = nil, nil, nil, nil
			f.j.Verdict = &left // without the items, which are delivered now
		}
		d.all.mu.Unlock()
		if !mine {
			return
		}
	}
	d.all.judge.Handed(ctx, d.v, ackTime)
	d.v = nil
}

// gone records that the agent will not get the answer, so that the next delivery gets its items.
func (d *delivery) gone() {
	if d.flight == nil {
		return
	}
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	if d.flight.holder == d && !d.flight.handed {
		d.flight.holder = nil
	}
}

// digestOf returns the same digest for equal JSON values, independent of their format.
func digestOf(v jsontext.Value) digest {
	canonical := slices.Clone(v)
	if err := canonical.Canonicalize(); err != nil {
		canonical = v
	}
	return sha256.Sum256(canonical)
}

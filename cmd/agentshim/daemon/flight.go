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
	// knownByID is how long a call that a runtime's own id names is known, and
	// knownByHash one that is known by what it is: the other hooks of the same
	// moment follow at once, and the same call made again is another one.
	knownByID   = 5 * time.Minute
	knownByHash = 3 * time.Second
	// passesFor is how long a verdict is shared that lets something pass: as long as
	// the other hooks of the same moment need. After that the call is judged again,
	// because an agent may have been frozen since.
	passesFor = 3 * time.Second
	// maxFlights bounds the calls that are known.
	maxFlights = 10_000
)

// flights make one event of all deliveries of one moment of one call: several
// layers of a runtime's configuration, general and special hooks, hook and MCP
// proxy. The first one has it judged; all get its decision and its rewrites, and
// one of them what was waiting for the agent.
//
// An id alone does not make two deliveries the same: a verdict is passed on only
// for the very call that it was about. It is passed on no more once a verdict of
// another version of the configuration or of what is frozen has come.
type flights struct {
	judge Judge
	now   func() time.Time

	mu     sync.Mutex           // guards what follows
	byKey  map[string][]*flight // one for each agent and content
	byPair map[string][]*flight // the moments before and after a call
	pairs  pairing
	queues [2][]*flight // those that are over, known by hash and by id, oldest first; dropped ones included
	origin origin       // of the verdict that came last
	shared sharing
}

// sharing counts deliveries that were told the verdict of another one: by the
// runtime's id of the call, and by what the call is.
type sharing struct{ byID, byContent int64 }

// An origin is what a verdict was made by.
type origin struct {
	fabric         string
	config, freeze uint64
}

// A flight is one event, under way or over.
type flight struct {
	key   string
	pair  string // empty: it cannot be told
	q     facts
	byID  bool
	again bool          // who asks a second time did not hear the first answer
	until time.Time     // when it is forgotten; zero: it is under way
	fresh time.Time     // when its verdict is shared no more
	from  origin        // of its verdict
	over  chan struct{} // closed when it is judged
	j     decide.Judgement
	input [2]digest // of the call, and of what a rewrite made of it
	seen  *sighting // the same call, for proxies; nil: none can see it
	// holder is who is to hand over what the verdict brought; nil: whoever comes next.
	holder *delivery
	handed bool
}

type digest [sha256.Size]byte

// facts are what a flight remembers of its question.
type facts struct {
	agent, session, tool string
	kind                 schema.EventType
	output               digest
}

func newFlights(j Judge) *flights {
	return &flights{judge: j, now: time.Now, byKey: map[string][]*flight{}, byPair: map[string][]*flight{}}
}

// ackTime is how long handing over may take; a resident judge does it by itself.
const ackTime = 100 * time.Millisecond

// A delivery is one of the ways on which a call came.
type delivery struct {
	all *flights
	// borrow: the agent's id is a guess.
	borrow bool
	// mute: the hook's side of the same call tells what there is to be told.
	mute bool
	// asks hears whose call it is before it is judged; nil: nobody wants to know.
	asks   func(agent string)
	flight *flight
	v      *schema.Verdict
}

// Ask gets a call judged, together with the other deliveries of it.
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
			return d.all.judge.Ask(ctx, q) // which says what is to become of it
		}
		if f.j.Unjudged == nil {
			return d.share(f)
		}
		// The first had less time, or worse luck: it is forgotten, and this one may ask.
		if ctx.Err() != nil {
			return d.all.judge.Ask(ctx, q)
		}
	}
}

// endTurn tells the pairing of an agent whose turn is over, or whose next one begins. A
// subagent's turns are not the agent's.
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

// fly has a flight judged. Should that panic, nobody waits for it any more.
func (all *flights) fly(ctx context.Context, f *flight, q decide.Question) {
	j := decide.Judgement{Verdict: &schema.Verdict{}, Unjudged: errBroke}
	defer func() { all.land(f, j) }()
	j = all.judge.Ask(ctx, q)
}

var errBroke = errors.New("the daemon failed while it judged the call")

// board is the flight of a question; first: the caller has to have it judged.
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
	input := digestOf(q.Event.ToolInput)
	fact := factsOf(q.Event)
	for _, f := range slices.Clone(all.byKey[key]) {
		switch {
		case !f.is(&fact, input):
			continue
		case all.stale(f):
			all.drop(f) // the call is judged again, but what was told is not told again
			d.mute = d.mute || f.handed || f.holder != nil && !q.Again
			continue
		case q.ByID:
			all.shared.byID++
		default:
			all.shared.byContent++
		}
		return f, false
	}
	// What hooks inject the runtime's own hook tells, where both sides ask.
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

// stale reports whether a flight's verdict may not hold any more. The caller holds the lock.
func (all *flights) stale(f *flight) bool {
	return !f.until.IsZero() && (f.from != all.origin || !f.fresh.After(all.now()))
}

func factsOf(e *schema.Event) facts {
	return facts{agent: e.AgentID, session: e.SessionID, tool: e.ToolName, kind: e.HookType,
		output: digestOf(slices.Concat(e.ToolOutput, e.Message, []byte("\x00"+e.Error+"\x00"+e.Prompt)))}
}

// adopt takes a call for that of the agent whose own hook asked about it. Where
// hooks of several agents did, nobody can tell which one's it is. The caller holds
// the lock.
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

// is reports whether a delivery is of the flight's very call. The caller holds the lock.
func (f *flight) is(q *facts, input digest) bool {
	switch {
	case q.tool != f.q.tool || q.agent != f.q.agent:
		return false
	case after(f.q.kind) && after(q.kind):
		// What came of a call looks different to its hook and to a proxy.
		return f.byID || q.output == f.q.output && input == f.input[0]
	}
	return q.kind == f.q.kind && slices.Contains(f.input[:], input) && q.output == f.q.output
}

// after reports whether an event is the one after a tool call.
func after(t schema.EventType) bool { return t == schema.PostToolUse || t == schema.ToolError }

// endOthers forgets what was before a call once it is over, and what was after it
// once it begins again. The caller holds the lock.
func (all *flights) endOthers(f *flight) {
	for _, other := range slices.Clone(all.byPair[f.pair]) {
		if other.q.agent == f.q.agent && !other.until.IsZero() && after(other.q.kind) != after(f.q.kind) {
			all.drop(other)
		}
	}
}

// land takes in what came of a flight.
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
	f.from = origin{j.Verdict.Fabric, j.Verdict.ConfigVersion, j.Verdict.FreezeVersion}
	all.origin = f.from
	*queue = append(*queue, f)
	if len(*queue) > maxFlights {
		all.drop((*queue)[0])
		*queue = (*queue)[1:]
	}
}

// forget drops what is known for long enough. The caller holds the lock.
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

// drop takes a flight off the board. The caller holds the lock.
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

// share is what one delivery is told of a flight that is over.
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

// holds reports whether this delivery hands over what there is.
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

// written says that the agent has the answer.
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
			f.j.Verdict = &left // nobody needs them any more
		}
		d.all.mu.Unlock()
		if !mine {
			return
		}
	}
	d.all.judge.Handed(ctx, d.v, ackTime)
	d.v = nil
}

// gone says that the agent will not get the answer: what it brought is for the
// next delivery, or comes again.
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

// digestOf is the same for the same JSON, however it is written.
func digestOf(v jsontext.Value) digest {
	canonical := slices.Clone(v)
	if err := canonical.Canonicalize(); err != nil {
		canonical = v
	}
	return sha256.Sum256(canonical)
}

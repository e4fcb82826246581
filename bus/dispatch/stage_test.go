package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// stage is where a drawn case is played: two workers for each pool, "a" and
// "b", that answer by script but do not always take a batch, do not always
// finish one, and now and then are lost on the way. None of that may change a
// verdict.
type stage struct {
	c       gen.Case
	script  model.Script
	seed    uint64
	members *dispatch.Members
	ids     atomic.Uint64

	mu       sync.Mutex // guards the fields below
	asked    map[string]int
	lost     map[int]bool // by the last hook of a batch
	calls    []model.Call
	asides   []string
	shadowed []*dispatch.Shadowed
}

var (
	_ dispatch.Caller = (*stage)(nil)
	_ dispatch.Local  = (*stage)(nil)
)

// slowest is the longest time of a case: no worker is slow, but a worker that refused is
// asked again only after its next heartbeat.
const slowest = 5 * time.Second

func newStage(c gen.Case, script model.Script, seed uint64) *stage {
	return &stage{c: c, script: script, seed: seed, members: dispatch.NewMembers(1000), asked: map[string]int{}, lost: map[int]bool{}}
}

// play makes a dispatcher judge the case, and waits for background work.
func (s *stage) play(attempt int, local bool, body []byte) (v schema.Verdict, took time.Duration, err error) {
	snap, err := dispatch.Compile(s.c.Config, compileCondition)
	if err != nil {
		return v, 0, err
	}
	opt := dispatch.Options{
		Caller: s, Members: s.members, NewID: func() string { return strconv.FormatUint(s.ids.Add(1), 10) },
		Watch: dispatch.Watch{Aside: s.aside, Shadow: s.shadow},
	}
	if local {
		opt.Local = s
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s.beat()
	go s.live(ctx)
	r := routing(&s.c.Event)
	start := time.Now()
	v = dispatch.New(opt).Dispatch(context.Background(), snap, snap.Plan(r.Agent, r.Event, r.Tool), &dispatch.Request{
		Routing: r, Attempt: attempt, Deadline: time.Now().Add(time.Minute), Body: body,
	})
	v.ConfigVersion = s.c.Config.Version
	took = time.Since(start)
	pass(slowest)
	synctest.Wait()
	return v, took, nil
}

func routing(e *schema.Event) schema.Routing {
	return schema.Routing{Event: e.HookType, Agent: e.AgentID, Session: e.SessionID, Tool: e.ToolName, ID: e.EventID}
}

func (s *stage) live(ctx context.Context) {
	t := time.NewTicker(schema.BeatEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.beat()
			s.members.Tick(schema.BeatEvery)
		}
	}
}

func (s *stage) beat() {
	for _, pool := range stagePools {
		for _, worker := range []string{"a", "b"} {
			s.members.Beat(&schema.Beat{Pool: pool, Worker: worker, Capacity: 4, Versions: []uint64{s.c.Config.Version}})
		}
	}
}

var stagePools = []string{schema.DefaultPool, "east", "west"}

func (s *stage) aside(_ *dispatch.Request, h *schema.Hook, _ schema.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asides = append(s.asides, h.Name)
}

func (s *stage) shadow(_ *dispatch.Request, report *dispatch.Shadowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shadowed = append(s.shadowed, report)
}

// fate decides what happens to a batch at the nth attempt. It depends only on the seed
// and the hooks, so that a case can be repeated.
func (s *stage) fate(b *schema.Batch, who string) (n int, fate uint64) {
	s.mu.Lock()
	key := fmt.Sprint(who, b.Hooks)
	n = s.asked[key]
	s.asked[key]++
	s.mu.Unlock()
	sum := fnv.New64a()
	fmt.Fprint(sum, s.seed, key, n)
	return n, sum.Sum64() >> 8
}

// Try is the worker in the dispatcher's process. Every other time it is full for a
// moment.
func (s *stage) Try(_ context.Context, b *schema.Batch) (schema.BatchReply, bool) {
	_, fate := s.fate(b, "local")
	if fate%2 == 0 {
		time.AfterFunc(time.Millisecond, func() { s.members.Freed(schema.DefaultPool) })
		return schema.BatchReply{}, false
	}
	return s.run("local", b, fate/2), true
}

// Call runs a batch on one of the workers.
func (s *stage) Call(_ context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
	n, fate := s.fate(b, "")
	refusals := []schema.Status{schema.StatusBusy, schema.StatusStale, schema.StatusDraining, "resting"}
	switch {
	case n > 0: // once is enough
	case fate%8 == 0:
		return schema.BatchReply{Worker: worker, Status: refusals[fate/8%4]}, nil
	case fate%8 == 1 && s.mayLose(b):
		reply := s.run(worker, b, fate/8)
		done := reply.Outcomes[:fate/8%uint64(len(reply.Outcomes)+1)]
		s.members.Beat(&schema.Beat{
			Pool: pool, Worker: worker, Capacity: 4, Versions: []uint64{s.c.Config.Version},
			Batches: []schema.BatchProgress{{Batch: b.Batch, Outcomes: done}},
		})
		return schema.BatchReply{}, errors.Join(dispatch.ErrGone, errors.New("lost on the way"))
	}
	return s.run(worker, b, fate/8), nil
}

// mayLose reports whether a batch may be lost without an effect on the verdict: once, if
// it is idempotent.
func (s *stage) mayLose(b *schema.Batch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := b.Hooks[len(b.Hooks)-1]
	again := s.lost[last]
	s.lost[last] = true
	return s.c.Config.Hooks[last].Idempotent && !again
}

// run runs a batch as a worker does: in order, each hook sees the event as
// those before left it, up to the one that ends the chain or cannot be
// loaded; now and then those behind it have run beside it, or not all are asked.
func (s *stage) run(worker string, b *schema.Batch, fate uint64) schema.BatchReply {
	reply := schema.BatchReply{Worker: worker}
	e, err := schema.DecodeEvent(b.Body, b.Routing)
	if err != nil {
		reply.Status, reply.Error = schema.StatusMalformed, err.Error()
		if _, forged := errors.AsType[*schema.Mismatch](err); forged {
			reply.Status = schema.StatusMismatch
		}
		return reply
	}
	few := len(b.Hooks)
	if fate%4 == 0 {
		few = 1 + int(fate/4)%few
	}
	ended := false
	for _, i := range b.Hooks[:few] {
		h := &s.c.Config.Hooks[i]
		if ended && !(h.Readonly && fate%3 == 0 && allReadonly(s.c.Config.Hooks, b.Hooks)) {
			break
		}
		s.record(h, e)
		o := outcome(i, s.script(*h, *e))
		reply.Outcomes = append(reply.Outcomes, *o)
		part := dispatch.Settle(h, o)
		ended = ended || o.Kind == schema.LoadError || h.Event.Terminal(part.Decision)
		if rw := part.Rewritten(h.Event); rw != nil && !ended {
			next := *e
			next.Apply(rw)
			e = &next
		}
	}
	return reply
}

func allReadonly(hooks []schema.Hook, of []int) bool {
	return !slices.ContainsFunc(of, func(i int) bool { return !hooks[i].Readonly })
}

func (s *stage) record(h *schema.Hook, e *schema.Event) {
	if h.Mode == schema.Shadow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, model.Call{Hook: h.Name, Input: *e})
}

// The conditions of cases. "odd" depends on everything that hooks may rewrite.
var stageConditions = []string{"", "", "true", "false", "odd", "odd", "fails", "panics"}

func holds(condition string, e schema.Event) (bool, error) {
	switch condition {
	case "true":
		return true, nil
	case "odd":
		sum := fnv.New32a()
		for _, v := range []jsontext.Value{e.ToolInput, e.ToolOutput, e.Message, e.Response} {
			if v = v.Clone(); v.Canonicalize() == nil {
				sum.Write(v)
			}
		}
		return sum.Sum32()%2 == 1, nil
	case "fails", "panics":
		return false, errors.New("it cannot be evaluated")
	}
	return false, nil
}

type condition string

func compileCondition(text string) (dispatch.Condition, error) { return condition(text), nil }

func (c condition) Holds(v *dispatch.View) (bool, error) {
	switch c {
	case "routing":
		return v.Tool == "Bash" && v.Agent == "agent-1", nil
	case "other agent":
		return v.Agent == "agent-2", nil
	}
	e, err := v.Event()
	if err != nil {
		return false, err
	}
	if c == "panics" {
		panic("it cannot be evaluated")
	}
	return holds(string(c), *e)
}

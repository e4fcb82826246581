package decide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// oneBatch is how many calls a process hands in that ends.
	oneBatch = 50
	// othersFor is how long it waits for those of other agents, about which it may
	// not be allowed to speak.
	othersFor = 25 * time.Millisecond
	// lateFor bounds one request in the background, and pauseFor is how long it waits
	// after one that failed.
	lateFor  = 5 * time.Second
	pauseFor = time.Second
	// lookEvery is how often a process that stays looks for what others recorded.
	lookEvery = 10 * time.Second
)

// A later does what can wait until an answer is given: it takes over the policy,
// and hands in what nobody judged.
type later struct {
	mu     sync.Mutex // guards what follows
	busy   bool
	again  bool      // while it was busy it was heard that the policy is another one
	looked time.Time // when the record was looked at
	failed time.Time // when something did not work
	work   sync.WaitGroup
	ctx    context.Context //nolint:containedctx // the life of the judge, not of one request
	stop   context.CancelFunc
}

func newLater() *later {
	l := &later{}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// behind sees in the background to what is to be done, if that is not being done
// already.
func (j *Judge) behind(line *client.Client, stale bool) {
	l, now := j.later, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	look := now.Sub(l.looked) > lookEvery
	l.again = l.again || l.busy && stale
	if l.busy || !stale && !look || now.Sub(l.failed) < pauseFor || l.ctx.Err() != nil {
		return
	}
	l.busy = true
	if look {
		l.looked = now
	}
	l.work.Go(func() {
		for {
			err := errBroke
			j.calmly(func() { err = j.catchUp(line) })()
			if l.done(err) {
				return
			}
		}
	})
}

// done reports whether that was all that could wait.
func (l *later) done(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.again && err == nil
	l.busy, l.again = again, false
	if err != nil {
		l.failed, l.looked = time.Now(), time.Time{}
	}
	return !again
}

var errBroke = errors.New("it panicked")

// catchUp takes over the policy, and hands in all that is on the record.
func (j *Judge) catchUp(line *client.Client) error {
	err := j.takeOver(j.later.ctx, line)
	for more := err == nil; more && j.later.ctx.Err() == nil; {
		more, err = j.handIn(j.later.ctx, line, "", schema.MaxUnjudged)
	}
	return err
}

// calmly is f, made so that what breaks in it breaks nothing else: the answer is
// given, and a process that ends badly would be taken for another one.
func (j *Judge) calmly(f func()) func() {
	return func() {
		defer func() {
			if p := recover(); p != nil {
				j.say("failed in background work: %v", p)
			}
		}()
		f()
	}
}

// takeOver takes over the policy, and says what is wrong with it.
func (j *Judge) takeOver(ctx context.Context, line *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, lateFor)
	defer cancel()
	news, err := j.policy.fetch(ctx, line)
	if news != "" {
		j.say("%s", news)
	}
	if err != nil && refused(err) {
		j.say("%v", err)
	}
	return err
}

// handIn hands in calls of one agent, of that one if there are any, and reports
// whether there may be more.
func (j *Judge) handIn(ctx context.Context, line *client.Client, agent string, most int) (more bool, err error) {
	state, fabric := shimstate.Folder(j.link.State), line.Noted("").Fabric
	if fabric == "" {
		return false, nil
	}
	records := []shimstate.UnjudgedLog{state.UnjudgedLog(fabric, j.link.URL)}
	for _, url := range j.link.places() {
		records = append(records, state.UnjudgedLog("", url)) // from before any fabric was reached
	}
	for _, r := range records {
		calls, err := r.Oldest(agent, most)
		if err != nil {
			j.say("reading the record of calls that the fabric did not judge: %v", err)
		}
		if len(calls) == 0 {
			continue
		}
		if err := j.record(ctx, line, calls, agent); err != nil {
			return false, err
		}
		if err := r.Remove(calls); err != nil {
			j.say("removing reported calls from the record: %v; agentshim reports them again", err)
			return false, err
		}
		return true, nil
	}
	return false, nil
}

// record hands in calls of one agent.
func (j *Judge) record(ctx context.Context, line *client.Client, calls []schema.Unjudged, agent string) error {
	within := lateFor
	if agent != "" && calls[0].Agent != agent {
		within = othersFor
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := line.Record(ctx, calls[0].Agent, calls)
	if errors.Is(err, client.ErrDenied) {
		err = j.report(line, calls)
	}
	if err != nil && badly(err) {
		// Said again and again it would hold back all that is behind it.
		j.say("the fabric rejects the record of calls that it did not judge, so agentshim drops the record: %v", err)
		return nil
	}
	return err
}

// reportFor bounds how long it takes to tell of a call that the credentials are not for.
const reportFor = 250 * time.Millisecond

// report hands in calls of an agent that the credentials are not for, as those of the agent that they are
// for: the operator hears of them by no other way. Why says whose they are.
func (j *Judge) report(line *client.Client, calls []schema.Unjudged) error {
	own := bus.CredsAgent(j.link.Creds)
	if own == "" {
		return fmt.Errorf("%w: the credentials name no agent under which agentshim can report the call", client.ErrDenied)
	}
	ctx, cancel := context.WithTimeout(j.later.ctx, reportFor)
	defer cancel()
	all := slices.Clone(calls)
	for i := range all {
		all[i].Why = fmt.Sprintf("asked as the agent %q: %s", all[i].Agent, all[i].Why)
	}
	_, err := line.Record(ctx, own, all)
	return err
}

// badly reports whether the fabric will never take it.
func badly(err error) bool {
	e, said := errors.AsType[*schema.ControlError](err)
	return said && e.Code == schema.CodeBadRequest || errors.Is(err, client.ErrDenied)
}

// record is the fabric that is to be told of a call; empty: whichever answers first at the place.
func (r *ruling) record() string {
	if len(r.fabrics) != 1 {
		return ""
	}
	return r.fabrics[0]
}

// note puts a call on the record, before its answer is given. A disk that hangs
// does not keep the answer back. What the credentials are not for is told at once, if it can be.
func (j *Judge) note(ctx context.Context, q *Question, r *ruling, v *schema.Verdict, by string) {
	u := schema.Unjudged{
		EventID: v.EventID, Time: time.Now().UTC(), Agent: q.Event.AgentID, Session: q.Event.SessionID,
		Event: q.Event.HookType, Tool: q.Event.ToolName, Decision: v.Decision, Why: by + ": " + v.HookErrors[0],
	}
	if u.Decision == schema.None {
		u.Decision = schema.Continue
	}
	if r.policy != nil {
		u.ConfigVersion = r.policy.ConfigVersion
	}
	if line := j.connected(); line != nil && errors.Is(r.cause, client.ErrDenied) && j.report(line, []schema.Unjudged{u}) == nil {
		return
	}
	_, err := fromDisk(ctx, j, noteFor, func() (_ struct{}, err error) {
		err = errBroke
		j.calmly(func() { err = shimstate.Folder(j.link.State).UnjudgedLog(r.record(), j.link.places()[0]).Add(u) })()
		return struct{}{}, err
	})
	if err != nil {
		j.say("recording this call: %v; the fabric will not learn of it", err)
	}
	j.later.mu.Lock()
	defer j.later.mu.Unlock()
	j.later.looked = time.Time{}
}

// A locked writer takes one sentence at a time.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// say tells people something.
func (j *Judge) say(format string, args ...any) {
	fmt.Fprintf(j.link.Stderr, "agentshim: "+format+"\n", args...)
}

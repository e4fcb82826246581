package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/kept"
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

var errBroke = errors.New("it broke")

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
				j.say("the shim failed at what could wait: %v", p)
			}
		}()
		f()
	}
}

// takeOver takes over the policy, and says what is wrong with it.
func (j *Judge) takeOver(ctx context.Context, line *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, lateFor)
	defer cancel()
	err := j.policy.fetch(ctx, line)
	if err != nil && refused(err) {
		j.say("%v", err)
	}
	return err
}

// handIn hands in calls of one agent, of that one if there are any, and reports
// whether there may be more.
func (j *Judge) handIn(ctx context.Context, line *client.Client, agent string, most int) (more bool, err error) {
	state, fabric := kept.Folder(j.link.State), line.Noted("").Fabric
	if fabric == "" {
		return false, nil
	}
	records := []kept.Record{state.Record(fabric, j.link.URL)}
	for _, url := range j.link.places() {
		records = append(records, state.Record("", url)) // from before any fabric was reached
	}
	for _, r := range records {
		calls, err := r.First(agent, most)
		if err != nil {
			j.say("the record of what nobody judged: %v", err)
		}
		if len(calls) == 0 {
			continue
		}
		if err := j.record(ctx, line, calls, agent); err != nil {
			return false, err
		}
		if err := r.Known(calls); err != nil {
			j.say("what was handed in can not be taken off the record, and is handed in again: %v", err)
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
	if err != nil && badly(err) {
		// Said again and again it would hold back all that is behind it.
		j.say("the fabric does not take down calls that nobody judged, and they are dropped: %v", err)
		return nil
	}
	return err
}

// badly reports whether the fabric will never take it.
func badly(err error) bool {
	e, said := errors.AsType[*schema.ControlError](err)
	return said && e.Code == schema.CodeBadRequest
}

// note puts a call on the record, before its answer is given. A disk that hangs
// does not keep the answer back.
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
	_, err := fromDisk(ctx, j, noteFor, func() (_ struct{}, err error) {
		err = errBroke
		j.calmly(func() { err = kept.Folder(j.link.State).Record(r.fabric, j.link.places()[0]).Add(u) })()
		return struct{}{}, err
	})
	if err != nil {
		j.say("nobody will hear of it, because it can not be recorded: %v", err)
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

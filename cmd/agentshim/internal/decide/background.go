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
	// backgroundTime limits one request in the background, and retryPause is the pause after a failed one.
	backgroundTime = 5 * time.Second
	retryPause     = time.Second
	checkEvery     = 10 * time.Second // how often a resident judge checks for calls that other processes logged
)

// A background is the work that no answer waits for: the update of the policy, and reports of unjudged calls.
type background struct {
	mu      sync.Mutex // guards what follows
	busy    bool
	again   bool      // the policy changed while it was busy
	checked time.Time // when it checked the log of unjudged calls
	failed  time.Time // when it failed
	work    sync.WaitGroup
	ctx     context.Context //nolint:containedctx // the life of the judge, not of one request
	stop    context.CancelFunc
}

// catchUp starts the background work, unless it runs already or is not needed.
func (j *Judge) catchUp(line *client.Client, stale bool) {
	b, now := j.background, time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	check := now.Sub(b.checked) > checkEvery
	b.again = b.again || b.busy && stale
	if b.busy || !stale && !check || now.Sub(b.failed) < retryPause || b.ctx.Err() != nil {
		return
	}
	b.busy = true
	if check {
		b.checked = now
	}
	b.work.Go(func() {
		for {
			err := errPanicked
			j.guarded(func() { err = j.updateAndReport(line) })()
			if b.done(err) {
				return
			}
		}
	})
}

// done notes the result of a run, and reports whether no further run is due.
func (b *background) done(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	again := b.again && err == nil
	b.busy, b.again = again, false
	if err != nil {
		b.failed, b.checked = time.Now(), time.Time{}
	}
	return !again
}

var errPanicked = errors.New("it panicked")

func (j *Judge) updateAndReport(line *client.Client) error {
	err := j.updatePolicy(j.background.ctx, line)
	for more := err == nil; more && j.background.ctx.Err() == nil; {
		more, err = j.reportUnjudged(j.background.ctx, line, "", schema.MaxUnjudged)
	}
	return err
}

// guarded returns f with a panic turned into a message: the answer is written, and the process has not failed.
func (j *Judge) guarded(f func()) func() {
	return func() {
		defer func() {
			if p := recover(); p != nil {
				j.say("failed in background work: %v", p)
			}
		}()
		f()
	}
}

// updatePolicy gets the policy of the fabric, and prints what is wrong with it.
func (j *Judge) updatePolicy(ctx context.Context, line *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTime)
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

// firstFor limits how long a first verdict, or a process that ends after it, waits for the policy.
const firstFor = time.Second

// Learn requests the policy if none is known, because the fabric may be gone at the next call.
func (j *Judge) Learn(ctx context.Context, left time.Duration) {
	line := j.connected()
	if j.link.State == "" {
		j.say("%v; while no fabric answers, agentshim refuses every call", shimstate.Folder("").Usable())
	}
	if j.link.State == "" || line == nil || j.policy.known() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(firstFor, left))
	defer cancel()
	j.guarded(func() { _ = j.updatePolicy(ctx, line) })()
}

// refused reports whether the shim rejected a fabric's policy, which people must know.
func refused(err error) bool {
	_, said := errors.AsType[*schema.ControlError](err)
	return !said && !errors.Is(err, shimstate.ErrBehind) && !errors.Is(err, client.ErrUnanswered) && !errors.Is(err, client.ErrUnreachable)
}

// A lockedWriter writes one message at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (j *Judge) say(format string, args ...any) {
	fmt.Fprintf(j.link.Stderr, "agentshim: "+format+"\n", args...)
}

const (
	maxLastReport = 50 // how many calls a process reports before it ends
	// othersTime limits the report of calls of other agents, which the credentials may not allow.
	othersTime    = 25 * time.Millisecond
	ownReportTime = 250 * time.Millisecond // limits [Judge.reportAsOwn]
)

// reportUnjudged reports unjudged calls of one agent, of the named one if it has any. more: there are others.
func (j *Judge) reportUnjudged(ctx context.Context, line *client.Client, agent string, most int) (more bool, err error) {
	state, fabric := shimstate.Folder(j.link.State), line.Noted("").Fabric
	if fabric == "" {
		return false, nil
	}
	logs := []shimstate.UnjudgedLog{state.UnjudgedLog(fabric, j.link.URL)}
	for _, url := range j.link.urls() {
		logs = append(logs, state.UnjudgedLog("", url)) // from before a fabric answered
	}
	for _, log := range logs {
		calls, err := log.Oldest(agent, most)
		if err != nil {
			j.say("reading the record of calls that the fabric did not judge: %v", err)
		}
		if len(calls) == 0 {
			continue
		}
		if err := j.report(ctx, line, calls, agent); err != nil {
			return false, err
		}
		if err := log.Remove(calls); err != nil {
			j.say("removing reported calls from the record: %v; agentshim reports them again", err)
			return false, err
		}
		return true, nil
	}
	return false, nil
}

func (j *Judge) report(ctx context.Context, line *client.Client, calls []schema.Unjudged, agent string) error {
	within := backgroundTime
	if agent != "" && calls[0].Agent != agent {
		within = othersTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := line.Record(ctx, calls[0].Agent, calls)
	if errors.Is(err, client.ErrDenied) {
		err = j.reportAsOwn(line, calls)
	}
	e, said := errors.AsType[*schema.ControlError](err)
	if said && e.Code == schema.CodeBadRequest || errors.Is(err, client.ErrDenied) {
		// A retry would delay all later calls.
		j.say("the fabric rejects the record of calls that it did not judge, so agentshim drops the record: %v", err)
		return nil
	}
	return err
}

// reportAsOwn reports calls of an agent that the credentials do not allow, under the agent that they are for:
// the operator sees them in no other way.
func (j *Judge) reportAsOwn(line *client.Client, calls []schema.Unjudged) error {
	own := bus.CredsAgent(j.link.Creds)
	if own == "" {
		return fmt.Errorf("%w: the credentials name no agent under which agentshim can report the call", client.ErrDenied)
	}
	ctx, cancel := context.WithTimeout(j.background.ctx, ownReportTime)
	defer cancel()
	all := slices.Clone(calls)
	for i := range all {
		all[i].Why = fmt.Sprintf("asked as the agent %q: %s", all[i].Agent, all[i].Why)
	}
	_, err := line.Record(ctx, own, all)
	return err
}

// logUnjudged logs a call before its answer is written. A disk that hangs does not delay the answer.
func (j *Judge) logUnjudged(ctx context.Context, q *Question, r *ruling, v *schema.Verdict, by string) {
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
	if line := j.connected(); line != nil && errors.Is(r.cause, client.ErrDenied) && j.reportAsOwn(line, []schema.Unjudged{u}) == nil {
		return
	}
	fabric := "" // the first one that answers at the URL
	if len(r.fabrics) == 1 {
		fabric = r.fabrics[0]
	}
	_, err := fromDisk(ctx, j, logTime, func() (_ struct{}, err error) {
		err = errPanicked
		j.guarded(func() { err = shimstate.Folder(j.link.State).UnjudgedLog(fabric, j.link.urls()[0]).Add(u) })()
		return struct{}{}, err
	})
	if err != nil {
		j.say("recording this call: %v; the fabric will not learn of it", err)
	}
	j.background.mu.Lock()
	defer j.background.mu.Unlock()
	j.background.checked = time.Time{}
}

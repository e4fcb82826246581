package decide

import (
	"context"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// diskTime limits how long an answer waits for the state folder. It waits for rules at least ruleTime,
	// and for the log at least logTime: rules matter more.
	diskTime = 500 * time.Millisecond
	ruleTime = 50 * time.Millisecond
	logTime  = 10 * time.Millisecond
)

// inTime returns the result of f, or the cause of ctx if ctx ends first. A disk or a server can
// block f without an end; f then continues in its own goroutine. A panic in f before the end of ctx
// is a panic here.
func inTime[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v     T
		err   error
		broke any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.broke = recover()
			done <- r
		}()
		r.v, r.err = f()
	}()
	select {
	case r := <-done:
		if r.broke != nil {
			panic(r.broke)
		}
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// patient returns ctx with a slightly earlier deadline, which leaves time to answer. Requests have
// still earlier deadlines, so they normally end before it, with an error of their own.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-schema.Margin(time.Until(end))/4))
}

// fromDisk returns the result of f, which reads or writes the state folder. A folder that hangs does
// not delay an answer beyond the deadline of ctx.
func fromDisk[T any](ctx context.Context, j *Judge, least time.Duration, f func() (T, error)) (T, error) {
	within := diskTime
	if end, ok := ctx.Deadline(); ok {
		within = min(within, max(time.Until(end)/2, least))
	}
	late := fmt.Errorf("the folder %s did not answer within %s", j.link.State, within)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), within, late)
	defer cancel()
	return inTime(ctx, f)
}

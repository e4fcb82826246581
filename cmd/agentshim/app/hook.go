package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/otlp"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// finishTime is how long a process lives at most after its answer.
const finishTime = time.Second

// spanTime is how long its collector may take of that.
const spanTime = 250 * time.Millisecond

// hook is one call of `agentshim hook`.
type hook struct {
	session.Settings
	link
	event   string
	timeout time.Duration
	// daemon is the socket of the daemon that may be asked, about these; empty: none
	// may, or whichever it is for.
	daemon, natsWanted, credsWanted string
	// socket is a path given for the daemon's, and start has one started where none is.
	socket string
	start  bool
	// context is how long the process may ask the fabric itself; nil: as long as it is run.
	context func() (context.Context, context.CancelFunc)
	// last: the process ends right after it, and the connection with it.
	last bool
	// managed: it was installed for all agents of the machine.
	managed bool
	// own is how the hook's own fabric is reached, while link leads to the daemon's; nil: it is the same.
	own *link

	stdin          io.Reader
	stdout, stderr io.Writer
	began          time.Time
	// step is told how far an answer is; only tests set it, to die there.
	step func(point string)
}

// check refuses a command line that cannot work.
func (h *hook) check() (err error) {
	if h.Runtime == "" {
		return program.UsageError("--runtime is missing; write --runtime generic")
	}
	if h.Dialect, err = dialect.For(h.Runtime); err != nil {
		return program.UsageError("%w", err)
	}
	if h.event != "" {
		if h.Moment, err = dialect.Find(h.Dialect, h.event); err != nil {
			return program.UsageError("--event: %w", err)
		}
	}
	if h.Unreachable == "" {
		if h.Unreachable = decide.UnreachableAllow; h.managed {
			h.Unreachable = decide.UnreachableDeny
		}
	}
	if h.Unreachable != decide.UnreachableDeny && h.Unreachable != decide.UnreachableAllow {
		return program.UsageError("--unreachable is %q; write deny or allow", h.Unreachable)
	}
	if err := session.CheckID(h.EventID); err != nil {
		return program.UsageError("--event-id: %w", err)
	}
	if h.timeout <= 0 {
		return program.UsageError("--timeout is %s; write a positive duration such as 30s", h.timeout)
	}
	return nil
}

// deadline is when the answer has to be known, so that it is written in time.
func (h *hook) deadline() time.Time { return h.began.Add(h.timeout - schema.Margin(h.timeout)) }

// run asks and answers, whatever happens, and returns the exit code.
func (h *hook) run(ctx context.Context) int {
	h.began = time.Now()
	h.identify()
	payload, unread := h.read()
	if h.daemon != "" {
		if code, ok := h.byDaemon(payload, unread); ok {
			return code
		}
	}
	if h.context != nil {
		var cancel context.CancelFunc
		ctx, cancel = h.context()
		defer cancel()
	}
	return h.directly(ctx, payload, unread)
}

// directly asks the fabric from here.
func (h *hook) directly(ctx context.Context, payload []byte, unread error) int {
	h.Workspaces = h.workspaces
	decide.MakeWorkspaces(h.workspaces)
	h.Env = environment
	ctx, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	spans := h.spans()
	judged := func(by *link) *decide.Judge {
		l := by.judgeLink("agentshim-"+h.Runtime, h.stderr, warnings(h.stderr))
		l.Tracer = spans.Tracer()
		return decide.New(l)
	}
	asks := &inTurn{Judge: judged(&h.link)}
	if h.own != nil {
		asks.own = func() *decide.Judge { return judged(h.own) }
	}
	end := func() {
		if !h.last { // all that had to be said was confirmed, or kept
			asks.Close()
		}
		spans.CloseIn(spanTime)
	}
	x := session.Exchange{Settings: h.Settings, Asker: asks, Stderr: program.Messages(h.stderr)}
	if h.state != "" {
		x.Shelf = shimstate.Folder(h.state)
		x.Versions = shimstate.Folder(h.state).Versions
	}
	r := x.Run(ctx, payload, unread)
	h.at("received")
	if !h.write(r.Answer) {
		h.finish(end)
		return program.Failed
	}
	h.at("written")
	h.finish(func() {
		defer end()
		r.Told()
		if r.Verdict != nil {
			left := time.Until(h.began.Add(h.timeout)) / 2
			asks.Handed(ctx, r.Verdict, min(ackTime, left))
			asks.Learn(ctx, left)
		}
	})
	h.at("acknowledged")
	return r.Exit
}

// inTurn asks the fabric of the daemon, and the hook's own one where that does not answer
// and nothing that is known of it refuses the call: the daemon may have ended long ago.
type inTurn struct {
	*decide.Judge
	own func() *decide.Judge // nil: there is no other
}

func (t *inTurn) Ask(ctx context.Context, q decide.Question) decide.Judgement {
	got := t.Judge.Ask(ctx, q)
	if t.own == nil || got.Unjudged == nil || q.Event.HookType.Blocks(got.Verdict.Decision) {
		return got
	}
	t.Close()
	t.Judge, t.own = t.own(), nil
	return t.Judge.Ask(ctx, q)
}

// spans hands the spans of this process on; nil: nobody traces here. The variables that
// set it are often the runtime's own, so that whatever is wrong with them is no matter of
// its hooks, and stderr may be what the agent reads.
func (h *hook) spans() *otlp.Exporter {
	if h.managed {
		return nil // whoever the agent is could send them elsewhere
	}
	return otlp.FromEnvironment(service, slog.New(slog.DiscardHandler))
}

// finish does what is left to be done now that the runtime has its answer. It
// waits for this process to end, so that nothing may hold that up for long, and
// what breaks now breaks nothing.
func (h *hook) finish(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				fmt.Fprintf(program.Messages(h.stderr), "agentshim: failed after the answer was written: %v\n", p)
			}
		}()
		f()
	}()
	timer := time.NewTimer(min(finishTime, time.Until(h.began.Add(h.timeout))*3/4))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

func (h *hook) at(point string) {
	if h.step != nil {
		h.step(point)
	}
}

// environment looks up what dialects may see of this process's environment.
func environment(name string) string {
	if slices.Contains(dialect.Environment(), name) {
		return os.Getenv(name)
	}
	return ""
}

// readInTime reads the payload, at most one event's worth, and not longer than there
// is time: a runtime that keeps stdin open gets its answer all the same.
func (h *hook) readInTime(ctx context.Context) ([]byte, error) {
	type input struct {
		data []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(h.stdin, schema.MaxEvent+1))
		done <- input{data, err}
	}()
	select {
	case in := <-done:
		if in.err != nil {
			return in.data, unreadable(in.err)
		}
		if len(in.data) > schema.MaxEvent {
			return in.data, errLarge()
		}
		return in.data, nil
	case <-ctx.Done():
		return nil, errSlow
	}
}

var errSlow = errors.New("stdin was still open after half of the timeout; write the event and close stdin")

func errLarge() error {
	return fmt.Errorf("the event on stdin is larger than the limit of %d bytes", schema.MaxEvent)
}
func unreadable(err error) error { return fmt.Errorf("reading stdin: %w", err) }

// write gives the answer, and reports whether the runtime has it.
func (h *hook) write(a dialect.Answer) bool {
	if _, err := h.stdout.Write(a.Stdout); err != nil {
		fmt.Fprintf(program.Messages(h.stderr), "agentshim: writing the answer: %v\n", err)
		return false
	}
	if a.Stderr != "" {
		fmt.Fprintln(h.stderr, a.Stderr)
	}
	return true
}

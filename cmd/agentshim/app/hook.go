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

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/cmd/internal/otlp"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	finishTime = time.Second            // limits how long a process lives after its answer
	spanTime   = 250 * time.Millisecond // limits how long the export of spans takes of it
	// signalDelay is when a hook begins to listen for signals, which starts a thread.
	signalDelay = 50 * time.Millisecond
)

type hook struct {
	session.Settings
	link
	event                   string
	timeout                 time.Duration
	daemon                  string // the socket of the daemon that the hook may ask; empty: it asks no daemon
	natsWanted, credsWanted string // name the fabric that the daemon must use; empty: any
	socket                  string // --socket; empty: the default path
	start                   bool   // starts a daemon for later calls if none runs
	process                 bool   // this process runs only this hook, and its end closes the connection
	managed                 bool   // an administrator installed the hook for all agents of the machine
	// own leads to the hook's own fabric while link leads to the daemon's; nil: they are the same.
	own *link

	stdin          io.Reader
	stdout, stderr io.Writer
	began          time.Time
	step           func(point string) // called at each step of an answer; tests use it to kill the process there
}

// deadline returns when the hook must have the answer, to write it before its timeout.
func (h *hook) deadline() time.Time { return h.began.Add(h.timeout - schema.Margin(h.timeout)) }

// run gets an answer and writes it, and returns the exit code. It always writes an answer.
func (h *hook) run(ctx context.Context) int {
	h.began = time.Now()
	if h.EventID == "" { // the daemon and the fabric get the same id
		if id, err := uuid.NewV7(); err == nil {
			h.EventID = id.String()
		}
	}
	payload, unread := h.read()
	if h.daemon != "" {
		if code, ok := h.askDaemon(payload, unread); ok {
			return code
		}
	}
	if h.process {
		var cancel context.CancelFunc
		ctx, cancel = program.ContextAfter(signalDelay)
		defer cancel()
	}
	return h.askFabric(ctx, payload, unread)
}

// askFabric asks the fabric from this process, and writes the answer.
func (h *hook) askFabric(ctx context.Context, payload []byte, unread error) int {
	h.Workspaces = h.workspaces
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
		if !h.process { // the end of the process closes it faster; unconfirmed acknowledgements are stored
			asks.Close()
		}
		spans.CloseIn(spanTime)
	}
	x := session.Exchange{Settings: h.Settings, Asker: asks, Stderr: program.Messages(h.stderr)}
	if h.state != "" {
		x.Store = shimstate.Folder(h.state)
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

// inTurn asks the fabric of the daemon, which may have ended long ago, and if it neither answers nor denies
// the call by its policy, the hook's own.
type inTurn struct {
	*decide.Judge
	own func() *decide.Judge // nil: no other fabric
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

// spans returns the exporter for spans, or nil if the hook is managed or traces nothing. Its errors would
// reach the agent on stderr.
func (h *hook) spans() *otlp.Exporter {
	if h.managed {
		return nil // the agent could send them elsewhere
	}
	return otlp.FromEnvironment(service, slog.New(slog.DiscardHandler))
}

// finish runs f for a limited time, because the runtime waits for the end, and reports a panic in f.
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

func environment(name string) string {
	if slices.Contains(dialect.Environment(), name) {
		return os.Getenv(name)
	}
	return ""
}

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

// askDaemon sends the call to the daemon, and writes its answer. ok is false if none answers.
func (h *hook) askDaemon(payload []byte, unread error) (code int, ok bool) {
	r := &daemon.Request{
		Runtime: h.Runtime, Event: h.event, Agent: h.Agent, Unreachable: h.Unreachable, EventID: h.EventID,
		Workspaces: absolute(h.workspaces), NATS: h.natsWanted, Creds: h.credsWanted, Env: environment, Payload: payload,
	}
	if unread != nil {
		r.Unread = unread.Error()
	}
	reply, err := daemon.Hook(h.daemon, r, h.deadline())
	if err != nil {
		h.replaceDaemon(err)
		return 0, false
	}
	defer reply.Close()
	if reply.Log != "" {
		_, _ = io.WriteString(h.stderr, reply.Log)
	}
	h.at("received")
	if !h.write(reply.Answer) {
		return program.Failed, true
	}
	h.at("written")
	reply.Written()
	h.at("acknowledged")
	return reply.Exit, true
}

// replaceDaemon prepares the hook to ask the daemon's fabric itself. It reports why a daemon did not answer,
// and starts one with --start.
func (h *hook) replaceDaemon(err error) {
	var same []string
	if !h.managed { // the agent could have written the daemon's card
		own := h.link
		if same = h.follow(h.daemon); same != nil && own.nats != h.nats {
			h.own = &own
		}
	}
	switch {
	case !errors.Is(err, daemon.ErrAbsent):
		_, _ = io.WriteString(program.Messages(h.stderr), "agentshim: "+err.Error()+"; this hook asks the fabric itself\n")
	case h.start:
		if err := h.startDaemon(same); err != nil && !errors.Is(err, daemon.ErrTaken) {
			_, _ = io.WriteString(program.Messages(h.stderr), "agentshim: starting a daemon: "+err.Error()+"\n")
		}
	}
}

// idleTime is how long a daemon that a hook started runs without a call.
const idleTime = 30 * time.Minute

// startDaemon starts a daemon for the fabric of this hook. fabric are flags for it.
func (h *hook) startDaemon(fabric []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	state := absolute(h.state)
	args := append([]string{"--idle", idleTime.String(), "--state", state}, fabric...)
	if h.socket != "" {
		args = append(args, "--socket", absolute(h.socket))
	}
	return daemon.Start{Place: daemon.Place{State: state, At: absolute(h.socket)}, Program: program, Args: args}.Detached()
}

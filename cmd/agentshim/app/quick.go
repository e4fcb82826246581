package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/early"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// Quick runs `agentshim hook`, which starts once per tool call, without what
// other commands need: no command tree, and signals only where the fabric is asked from
// here. The process is to end with it. ok is false if the command line is another one, or a faulty one: that is for [Main].
func Quick(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, ok bool) {
	if len(args) == 0 || args[0] != "hook" {
		return 0, false
	}
	h := hook{stdin: stdin, stdout: stdout, stderr: stderr, context: signalled, last: true}
	f := pflag.NewFlagSet("hook", pflag.ContinueOnError)
	f.Usage = func() {}
	f.SetOutput(io.Discard)
	h.flags(f)
	if f.Parse(args[1:]) != nil || f.NArg() > 0 || program.FromEnvironment(f) != nil || h.check() != nil {
		return 0, false
	}
	h.ask(f)
	h.take(early.Taken())
	// One thing is done after the other here. On several processors each would wake a
	// thread for the next one, and most of those threads would have to be made.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return h.run(context.Background()), true
}

// calm is how long nobody sends a hook a signal: runtimes do when its time is up.
const calm = 50 * time.Millisecond

func signalled() (context.Context, context.CancelFunc) { return program.ContextAfter(calm) }

// take takes over what was done before the program began.
func (h *hook) take(s early.Start) {
	h.began = time.Now().Add(-time.Duration(s.Elapsed))
	if s.EventID != "" {
		h.EventID = s.EventID
	}
	if !s.Read {
		return
	}
	g := &given{data: s.Payload}
	switch h.stdin = g; {
	case s.Slow:
		g.err = errSlow
	case s.Large:
		g.err = errLarge()
	}
	if s.Lost != "" {
		h.lost(errors.New(s.Lost))
		h.daemon = ""
	}
}

// given is what was on stdin, or why it can not be had.
type given struct {
	data []byte
	err  error
}

func (g *given) Read([]byte) (int, error) { return 0, io.EOF }

// flags are the flags of the command.
func (h *hook) flags(f *pflag.FlagSet) {
	f.StringVar(&h.Runtime, "runtime", "", "the agent's runtime")
	f.StringVar(&h.event, "event", "", "the event, by the runtime's own name or the fabric's; it may be missing where the payload names it")
	f.StringVar(&h.Agent, "agent", "", "the agent's id; default: what the payload says, else <runtime>-<session id>")
	f.StringVar(&h.EventID, "event-id", "", "the event's id, a UUID, where somebody asked about it before and heard nothing; default: a new one")
	h.link.flags(f, "the event's cwd")
	f.DurationVar(&h.timeout, "timeout", 60*time.Second, "the runtime's own timeout; the answer comes before it")
	f.StringVar(&h.Unreachable, "unreachable", "", "what to do with tool calls and prompts that nobody judged while no policy is known: deny or allow; default: allow, or deny with --managed")
	f.BoolVar(&h.managed, "managed", false, "this hook was installed for all agents of the machine: of the environment only HOOKFABRIC_AGENT counts, and no daemon is asked but that of --socket")
	program.Seal(f, "managed", "agent")
	f.StringVar(&h.socket, "socket", "", "where the local daemon listens, if there is one; default: "+
		"hookfabric/agentshim.sock in $XDG_RUNTIME_DIR, else agentshim.sock in --state. With --nats no daemon is asked")
	f.BoolVar(&h.start, "start", false, "start a daemon for the calls after this one if none is there; it ends when nobody has asked for 30 minutes")
}

// ask notes whether a daemon may be asked, and about which fabric: whoever names
// one on the command line means that one, and nobody in between.
func (h *hook) ask(f *pflag.FlagSet) {
	if program.Explicit(f, "nats") || program.Explicit(f, "creds") || program.ExplicitTLS(f) {
		return
	}
	if h.managed && !program.Explicit(f, "socket") {
		return // whoever the agent is could put a daemon of his own there
	}
	h.daemon = daemon.Place{State: h.state, At: h.socket}.Socket()
	if f.Changed("nats") {
		h.natsWanted = h.nats
	}
	h.credsWanted = absolute(h.creds)
}

// absolute is a path as another process understands it; empty stays empty.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// byDaemon has the daemon make the exchange. ok is false if there is none that does.
func (h *hook) byDaemon(payload []byte, unread error) (code int, ok bool) {
	r := &daemon.Request{
		Runtime: h.Runtime, Event: h.event, Agent: h.Agent, Unreachable: h.Unreachable, EventID: h.EventID,
		Workspaces: absolute(h.workspaces), NATS: h.natsWanted, Creds: h.credsWanted, Env: environment, Payload: payload,
	}
	if unread != nil {
		r.Unread = unread.Error()
	}
	reply, err := daemon.Hook(h.daemon, r, h.deadline())
	if err != nil {
		h.notice(err)
		return 0, false
	}
	defer reply.Close()
	if reply.Log != "" {
		_, _ = io.WriteString(h.stderr, reply.Log) // for people, if they look
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

// notice tells people why a daemon that is there did not answer, and starts one
// where none is.
func (h *hook) notice(err error) {
	switch {
	case !errors.Is(err, daemon.ErrAbsent):
		h.lost(err)
	case h.start:
		if err := h.startDaemon(); err != nil && !errors.Is(err, daemon.ErrTaken) {
			_, _ = io.WriteString(h.stderr, "agentshim: a daemon could not be started: "+err.Error()+"\n")
		}
	}
}

func (h *hook) lost(err error) {
	_, _ = io.WriteString(h.stderr, "agentshim: "+err.Error()+"; the fabric is asked from here\n")
}

// idle is when a daemon that a hook started ends.
const idle = 30 * time.Minute

// startDaemon starts one for the fabric that this hook asks.
func (h *hook) startDaemon() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// The fabric and its credentials are in the environment, if anywhere.
	state := absolute(h.state)
	args := []string{"--idle", idle.String(), "--state", state}
	if h.socket != "" {
		args = append(args, "--socket", absolute(h.socket))
	}
	return daemon.Start{Place: daemon.Place{State: state, At: absolute(h.socket)}, Program: program, Args: args}.Detached()
}

// identify gives the event its id, so that it is the same one whoever asks.
func (h *hook) identify() {
	if h.EventID != "" {
		return
	}
	if id, err := uuid.NewV7(); err == nil {
		h.EventID = id.String()
	}
}

// read reads the payload, and leaves time to ask.
func (h *hook) read() ([]byte, error) {
	if g, ok := h.stdin.(*given); ok {
		return g.data, g.err
	}
	if f, ok := h.stdin.(*os.File); ok {
		if data, err, ok := readFile(f, h.began.Add(h.timeout/2)); ok {
			return data, err
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), h.began.Add(h.timeout/2))
	defer cancel()
	return h.readInTime(ctx)
}

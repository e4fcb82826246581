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
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// Quick runs `agentshim hook`, which starts once per tool call, without what
// other commands need: no command tree, and signals only where the fabric is asked from
// here. The process is to end with it. ok is false if the command line is another one, or a faulty one: that is for [Main].
func Quick(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, ok bool) {
	if len(args) == 0 || args[0] != "hook" {
		return 0, false
	}
	h := hook{stdin: stdin, stdout: stdout, stderr: program.Terminal(stderr), context: signalled, last: true}
	f := pflag.NewFlagSet("hook", pflag.ContinueOnError)
	f.Usage = func() {}
	f.SetOutput(io.Discard)
	h.flags(f)
	if f.Parse(args[1:]) != nil || f.NArg() > 0 || program.FromEnvironment(f) != nil || h.check() != nil {
		return 0, false
	}
	h.ask(f)
	// One thing is done after the other here. On several processors each would wake a
	// thread for the next one, and most of those threads would have to be made.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return h.run(context.Background()), true
}

// calm is how long nobody sends a hook a signal: runtimes do when its time is up.
const calm = 50 * time.Millisecond

func signalled() (context.Context, context.CancelFunc) { return program.ContextAfter(calm) }

// flags are the flags of the command.
func (h *hook) flags(f *pflag.FlagSet) {
	f.StringVar(&h.Runtime, "runtime", "", "the agent's `RUNTIME`")
	f.StringVar(&h.event, "event", "", "`NAME` of the event, as the runtime or the fabric calls it; default: the name in the payload")
	f.StringVar(&h.Agent, "agent", "", "the agent's `ID`; default: the id in the payload, else <runtime>-<session id>")
	f.StringVar(&h.EventID, "event-id", "", "the event's id, a `UUID`; repeat the id of an earlier attempt that got no answer; default: a new id")
	h.link.flags(f, "the working folder (cwd) of the event")
	f.DurationVar(&h.timeout, "timeout", 60*time.Second, "the runtime's timeout for this hook, such as 30s; agentshim answers earlier")
	f.StringVar(&h.Unreachable, "unreachable", "", "deny or allow tool calls and prompts when the fabric does not answer and no policy is known; default: allow, or deny with --managed")
	f.BoolVar(&h.managed, "managed", false, "for installations that users cannot change: read only HOOKFABRIC_AGENT from the environment, and use only the daemon at --socket; default: off")
	program.Seal(f, "managed", "agent")
	f.StringVar(&h.socket, "socket", "", "`PATH` of the daemon's unix socket; default: "+
		"hookfabric/agentshim.sock in $XDG_RUNTIME_DIR, else agentshim.sock in --state; with --nats, agentshim does not use the daemon")
	f.BoolVar(&h.start, "start", false, "start a daemon for later calls if none runs; that daemon ends after 30m without a call; default: off")
}

// ask notes whether a daemon may be asked, and about which fabric: whoever names
// one on the command line means that one, and nobody in between.
func (h *hook) ask(f *pflag.FlagSet) {
	h.resolve(f)
	if program.Explicit(f, "nats") || program.Explicit(f, "creds") || program.ExplicitTLS(f) {
		return
	}
	if h.managed && !program.Explicit(f, "socket") {
		return // whoever the agent is could put a daemon of his own there
	}
	h.daemon = daemon.Place{State: h.state, At: h.socket}.Socket()
	if !h.unnamed {
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
// where none is. Either way the daemon's fabric is the one to ask first.
func (h *hook) notice(err error) {
	var same []string
	if !h.managed { // the agent could write the card
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

// idle is when a daemon that a hook started ends.
const idle = 30 * time.Minute

// startDaemon starts one for the fabric that this hook asks. same are the flags that name it, where
// the environment does not.
func (h *hook) startDaemon(same []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	state := absolute(h.state)
	args := append([]string{"--idle", idle.String(), "--state", state}, same...)
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
	if f, ok := h.stdin.(*os.File); ok {
		if data, err, ok := readFile(f, h.began.Add(h.timeout/2)); ok {
			return data, err
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), h.began.Add(h.timeout/2))
	defer cancel()
	return h.readInTime(ctx)
}

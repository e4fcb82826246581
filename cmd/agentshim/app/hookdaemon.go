package app

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

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

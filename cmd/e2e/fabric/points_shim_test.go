package fabric_test

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// An askAgent is an agent with its shims: one process after the other, each for
// one event and with a folder for what the next must know, or a daemon.
type askAgent struct {
	w      *world
	id     string
	daemon bool
	folder shimstate.Folder

	mu    sync.Mutex // guards what follows
	shim  *pointShim // the newest
	held  bool       // the agent's machine is cut off
	wires []*wire

	// Only the goroutine of the agent uses the following fields.
	heard   []string            // the notes that the agent received, in order
	when    []time.Time         // when it received each
	perhaps map[string]bool     // notes that may come again, because a process died
	open    map[string][]string // the notes of events that are not known to be acknowledged
}

// A pointShim is one process.
type pointShim struct {
	agent  *askAgent
	wire   *wire
	client *client.Client
	kept   []client.Handover
	dead   atomic.Bool
}

func (w *world) agent(id string, daemon bool) *askAgent {
	return &askAgent{
		w: w, id: id, daemon: daemon, folder: shimstate.Folder(w.t.TempDir()),
		perhaps: make(map[string]bool), open: make(map[string][]string),
	}
}

// die ends the process that there is, and reports whether there was one.
func (a *askAgent) die() bool {
	a.mu.Lock()
	s := a.shim
	a.mu.Unlock()
	if s == nil || s.dead.Swap(true) {
		return false
	}
	s.wire.tear()
	a.w.graves.Go(s.close)
	return true
}

func (a *askAgent) cutOff(cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = cut
	cutOff(cut, a.wires...)
}

func (s *pointShim) close() {
	if s.client != nil {
		s.client.Close()
	}
	s.wire.done()
}

// process is the shim that asks next; nil: it cannot reach the server.
func (a *askAgent) process() *pointShim {
	a.mu.Lock()
	s := a.shim
	a.mu.Unlock()
	switch {
	case !a.daemon || s == nil:
	case !s.dead.Load():
		return s
	default: // it died between two questions
		a.forgotten()
	}
	s = &pointShim{agent: a}
	s.wire = newWire(a.w, func(out bool, what []byte) {
		if !out && brings(what) {
			a.w.reach(verdictSent, nil)
		}
	})
	a.mu.Lock()
	if a.held {
		s.wire.cut()
	}
	a.wires = append(a.wires, s.wire)
	a.mu.Unlock()
	var err error
	s.client, err = client.Connect(context.Background(), client.Options{InProcess: s.wire, Logger: slog.New(a.w.log).With("shim", a.id)})
	if err != nil {
		s.wire.done()
		return nil
	}
	if !a.daemon {
		if s.kept, err = a.folder.Handovers(a.id); err != nil {
			a.w.t.Error(err)
		}
		s.client.Recall(s.kept...)
	}
	a.mu.Lock()
	a.shim = s
	a.mu.Unlock()
	return s
}

// runtimeWaits is how long a runtime waits for its shim.
const runtimeWaits = 10 * time.Second

// call sends one event of the agent, delivers the injections of the verdict, and acknowledges them; nil: there was no
// verdict, or the shim died.
func (a *askAgent) call(e schema.EventType, tool string) *schema.Verdict {
	a.w.mu.Lock()
	a.w.turn = a
	a.w.mu.Unlock()
	s := a.process()
	if s == nil {
		return nil
	}
	v := s.asks(&schema.Event{
		HookType: e, AgentID: a.id, SessionID: "s", ToolName: tool, EventID: uuid.Must(uuid.NewV7()).String(),
		ToolInput: jsontext.Value(`{}`), ToolOutput: jsontext.Value(`"done"`),
	})
	switch {
	case !a.daemon && !s.dead.Swap(true): // it ends by itself
		s.close()
	case s.dead.Load():
		a.forgotten()
	}
	return v
}

// asks is what one process does for one event.
func (s *pointShim) asks(e *schema.Event) *schema.Verdict {
	ctx, cancel := context.WithTimeout(context.Background(), runtimeWaits)
	defer cancel()
	v, err := s.client.Ask(ctx, e)
	if err != nil {
		return nil
	}
	notes := s.agent.notes(v)
	if len(notes) > 0 {
		s.passes(shimReceived)
	}
	if s.dead.Load() {
		return nil
	}
	s.agent.hear(v.EventID, notes)
	if len(notes) > 0 {
		s.passes(shimHanded)
	}
	if !s.dead.Load() {
		s.acknowledges(v.EventID)
	}
	return v
}

func (s *pointShim) passes(p point) { s.agent.w.reach(p, nil) }

// acknowledges does what a shim does when its agent has read a verdict.
func (s *pointShim) acknowledges(event string) {
	a, c := s.agent, s.client
	brought, _ := c.Brought(event)
	c.Handed(event)
	noted := c.Noted(a.id)
	if !a.daemon && len(noted.Events) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := c.Ack(ctx, a.id, noted.Events...); err == nil {
			noted.Events = nil
		}
	}
	a.confirmed(noted.Events)
	if a.daemon || s.dead.Load() || noted.Fabric == "" {
		return
	}
	if len(noted.Events) > 0 || len(brought.Events) == 0 {
		noted.Sequences = brought.Sequences
	}
	s.keep(noted)
}

// keep writes down what the agent's next shim must know.
func (s *pointShim) keep(left client.Handover) {
	var confirmed []string
	for _, h := range s.kept {
		for _, e := range h.Events {
			if !slices.Contains(left.Events, e) {
				confirmed = append(confirmed, e)
			}
		}
	}
	if len(left.Events)+len(left.Sequences)+len(confirmed) == 0 {
		return
	}
	if err := s.agent.folder.AddHandover(left, confirmed); err != nil {
		s.agent.w.t.Error(err)
	}
	clear(s.agent.open) // the next shim knows
}

// confirmed notes which events are still to be acknowledged, as far as the
// shim has heard; it is alive, or the others may come again.
func (a *askAgent) confirmed(left []string) {
	for e := range a.open {
		if !slices.Contains(left, e) {
			delete(a.open, e)
			a.w.reach(shimAcked, nil)
		}
	}
}

// forgotten notes what may come again because a process died with it.
func (a *askAgent) forgotten() {
	for _, notes := range a.open {
		for _, n := range notes {
			a.perhaps[n] = true
		}
	}
	clear(a.open)
}

// hear has the agent read the notes in a verdict.
func (a *askAgent) hear(event string, notes []string) {
	for _, n := range notes {
		a.heard, a.when = append(a.heard, n), append(a.when, time.Now())
	}
	if len(notes) > 0 {
		a.open[event] = notes
	}
}

// The notes that are no producer's: a warning that time is over, and one that
// came when its round was over itself.
const (
	timeIsOver  = "round:0"
	roundIsOver = "over:0"
)

// note is how notes read.
var note = regexp.MustCompile(`note (\w+:\d+) for (\w+)|(TIME LIMIT REACHED)|(That round is over)`)

// notes are what a verdict brings, as the agent reads it.
func (a *askAgent) notes(v *schema.Verdict) (all []string) {
	for _, found := range note.FindAllStringSubmatch(texts(v.Injections), -1) {
		switch {
		case found[3] != "":
			all = append(all, timeIsOver)
		case found[4] != "":
			all = append(all, roundIsOver)
		case found[2] != a.id:
			a.w.t.Errorf("%s was told %q", a.id, found[0])
		default:
			all = append(all, found[1])
		}
	}
	return all
}

package channel

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// lookEvery is how often a writer looks whether its text was taken.
	lookEvery = 50 * time.Millisecond
	// askEvery is how often it asks for the next one when nothing waits.
	askEvery = 500 * time.Millisecond
	// holdEvery is when it renews the lease, which lasts 30 s.
	holdEvery = 10 * time.Second
	// doneTime is how long an acknowledgement may take before it is kept for later.
	doneTime = 2 * time.Second
	// takingTime is how long a reader may take that takes the text while it is
	// taken back.
	takingTime = time.Second
)

// A Queue is where texts come from.
type Queue interface {
	// DrainOne takes along the next item, under an event; the same event brings the same.
	DrainOne(ctx context.Context, agent, session, event string) (*schema.DrainAnswer, error)
	// Hold renews the lease of an event.
	Hold(ctx context.Context, agent string, events ...string) error
	// Done says that the agent has what the event brought. What can not be said now
	// is said later.
	Done(ctx context.Context, event string, within time.Duration) bool
	// AckKept says it of what a process before this one handed over.
	AckKept(ctx context.Context, h client.Handover) error
}

// A Writer puts texts into a folder, for one agent.
type Writer struct {
	Queue          Queue
	Agent, Session string
	Dir            string
	// Stderr hears what people should know.
	Stderr io.Writer
	// Step is told how far a text is; only tests set it, to die there.
	Step func(point string)

	state state
}

// Run writes until ctx ends, and then takes back what nobody took. The error says
// why it can not.
func (w *Writer) Run(ctx context.Context) error {
	dir := folder(w.Dir)
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return err
	}
	unlock, ok, err := lock(dir.path(writerLock))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("another process writes into %s; give each agent a folder of its own", w.Dir)
	}
	defer unlock()
	if dir.has(stateName) {
		if err := readFile(dir.path(stateName), &w.state); err != nil {
			return fmt.Errorf("what the writer before this one knew can not be read: %w; take the file away, and what lies in the folder may come twice", err)
		}
	}
	if w.state.Agent != "" && w.state.Agent != w.Agent {
		return fmt.Errorf("the folder %s belongs to the agent %s; give each agent a folder of its own", w.Dir, w.state.Agent)
	}
	trouble := ""
	for ctx.Err() == nil {
		wait := askEvery
		if some, err := w.next(ctx); err != nil && ctx.Err() == nil {
			if text := err.Error(); text != trouble {
				trouble = text
				fmt.Fprintf(w.Stderr, "agentshim: %v; trying again\n", err)
			}
		} else if some {
			wait, trouble = 0, ""
		}
		rest(ctx, wait)
	}
	return nil
}

// next hands over the next text. It reports whether there was one.
func (w *Writer) next(ctx context.Context) (some bool, err error) {
	dir := folder(w.Dir)
	event, again := w.state.Event, w.state.Event != ""
	switch {
	case again && w.lies() == gone: // it was taken while nobody looked
		h := client.Handover{Fabric: w.state.Fabric, Agent: w.Agent, Events: []string{event}}
		if err := w.Queue.AckKept(ctx, h); err != nil {
			return false, err
		}
		return true, w.forget()
	case !again && dir.has(FileName):
		return false, nil // somebody left it there, or its queue is gone: it comes first
	case !again:
		id, err := uuid.NewV7()
		if err != nil {
			return false, err
		}
		event = id.String()
	}
	a, err := w.Queue.DrainOne(ctx, w.Agent, w.Session, event)
	if err != nil {
		return false, err
	}
	sequence, strange := w.number(a)
	switch {
	case again && strange: // the queue it came from is gone, and only the file is left
		return false, w.forget()
	case a.Content == "":
		w.Queue.Done(ctx, event, doneTime) // what was told before is to be said only
		if again {                         // it went out elsewhere
			if _, err := dir.move(FileName, withdrawnName); err != nil {
				return false, err
			}
			return false, w.forget()
		}
		return false, nil
	case !again || sequence != w.state.Last || w.lies() != lying:
		if err := w.put(a, sequence); err != nil {
			return false, err
		}
	}
	return true, w.attend(ctx, event)
}

// number is the sequence of a text among all that were ever put here: the same
// for the same text, and greater than all before for another one. strange:
// another fabric answers than before.
func (w *Writer) number(a *schema.DrainAnswer) (sequence uint64, strange bool) {
	st := &w.state
	strange = st.Fabric != "" && st.Fabric != a.Fabric
	st.Fabric, st.Agent = a.Fabric, w.Agent
	if a.Content == "" {
		return 0, strange
	}
	if st.Event == a.EventID && st.Item == a.Sequence && !strange {
		return st.Last, false
	}
	if sequence = st.Offset + a.Sequence; sequence <= st.Last {
		st.Offset += st.Last + 1 - sequence
		sequence = st.Last + 1
	}
	return sequence, strange
}

// put writes a text and puts it where readers look.
func (w *Writer) put(a *schema.DrainAnswer, sequence uint64) error {
	dir := folder(w.Dir)
	if _, err := dir.move(FileName, withdrawnName); err != nil {
		return err
	}
	t := Text{Inject: Inject{a.Content, strategy(a)}, Matcher: a.Matcher, Sequence: sequence}
	if t.Matcher == "" {
		t.Matcher = "*"
	}
	w.at("taken along")
	if err := writeFile(dir.path(tmpName), &t); err != nil {
		return err
	}
	w.at("written")
	w.state.Event, w.state.Item, w.state.Last, w.state.Back = a.EventID, a.Sequence, sequence, false
	if err := w.save(); err != nil {
		return err
	}
	w.at("noted")
	if err := dir.drop(withdrawnName); err != nil {
		return err
	}
	_, err := dir.move(tmpName, FileName)
	w.at("put there")
	return err
}

func strategy(a *schema.DrainAnswer) schema.Strategy {
	if len(a.Injections) > 0 && a.Injections[0].Strategy.Known() {
		return a.Injections[0].Strategy
	}
	return schema.UserMessage
}

// where a text is.
type where int

const (
	gone where = iota
	lying
	back // it was not put there yet, or was taken back
)

func (w *Writer) lies() where {
	dir := folder(w.Dir)
	switch {
	case dir.has(FileName):
		return lying
	case dir.has(tmpName), dir.has(withdrawnName), w.state.Back:
		return back
	}
	return gone
}

// attend waits until the text is taken, and keeps it for as long as that takes.
// When ctx ends it is taken back.
func (w *Writer) attend(ctx context.Context, event string) error {
	dir := folder(w.Dir)
	hold := time.NewTicker(holdEvery)
	defer hold.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for dir.has(FileName) {
		select {
		case <-look.C:
		case <-hold.C:
			if err := w.Queue.Hold(ctx, w.Agent, event); err != nil && ctx.Err() == nil {
				fmt.Fprintf(w.Stderr, "agentshim: what lies in %s may come twice: %v\n", w.Dir, err)
			}
		case <-ctx.Done():
			return w.stop(event)
		}
	}
	return w.taken(ctx, event)
}

// stop takes back what lies there. What was taken at that moment is said to be.
func (w *Writer) stop(event string) error {
	ctx, cancel := context.WithTimeout(context.Background(), takingTime)
	defer cancel()
	dir := folder(w.Dir)
	for ctx.Err() == nil { // a reader that is telling it now takes it away at once
		unlock, ok, err := lock(dir.path(readerLock))
		if ok {
			defer unlock()
		}
		if ok || err != nil {
			break
		}
		rest(ctx, lookEvery)
	}
	back, err := dir.move(FileName, withdrawnName)
	if err != nil {
		return err
	}
	if !back {
		return w.taken(context.Background(), event)
	}
	w.at("taken back")
	w.state.Back = true // the queue gives it again: to the next writer, or to anybody when the lease has ended
	if err := w.save(); err != nil {
		return err
	}
	return dir.drop(withdrawnName)
}

// taken says that the agent has the text.
func (w *Writer) taken(ctx context.Context, event string) error {
	w.at("gone")
	w.Queue.Done(context.WithoutCancel(ctx), event, doneTime)
	w.at("acknowledged")
	return w.forget()
}

// forget notes that nothing of the queue lies there any more.
func (w *Writer) forget() error {
	dir := folder(w.Dir)
	w.state.Event, w.state.Back = "", false
	if err := w.save(); err != nil {
		return err
	}
	if err := dir.drop(tmpName); err != nil {
		return err
	}
	return dir.drop(withdrawnName)
}

func (w *Writer) save() error { return replaceFile(folder(w.Dir).path(stateName), &w.state) }

func (w *Writer) at(point string) {
	if w.Step != nil {
		w.Step(point)
	}
}

// rest waits, or until ctx ends.
func rest(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

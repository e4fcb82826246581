package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
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
	// fileFor is how long a text counts without its writer, which ends before the lease does.
	fileFor = 25 * time.Second
	// turnFor is how long a text that is for some tools only lies there while others wait.
	turnFor = time.Second
	// maxParked bounds the texts that wait for a tool.
	maxParked = 16
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
	// Release gives back what events brought: it is due again.
	Release(ctx context.Context, agent string, events ...string) error
	// Done says that the agent has what the event brought. What cannot be said now
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
	shown shown
	// unanswered is the event of a question whose answer did not come: the fabric may have
	// given a text.
	unanswered string
}

// shown is the text that lies there.
type shown struct {
	answer *schema.DrainAnswer
	parts  []string  // of its matcher
	part   int       // the one in the file
	since  time.Time // when that was put there
	ends   time.Time // when the item expires; zero: never
}

// Run writes until ctx ends, and then takes back what the agent was not told. The error says
// why it cannot.
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
		return fmt.Errorf("another process writes into %s; give each agent its own folder", w.Dir)
	}
	defer unlock()
	if dir.has(stateName) {
		if err := readFile(dir.path(stateName), &w.state); err != nil {
			return fmt.Errorf("reading the state of the previous writer: %w; if you delete the file, the text in the folder may be delivered twice", err)
		}
	}
	if w.state.Agent != "" && w.state.Agent != w.Agent {
		return fmt.Errorf("the folder %s belongs to the agent %s; give each agent its own folder", w.Dir, w.state.Agent)
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
	return w.release()
}

// next hands over the next text. It reports whether there was one.
func (w *Writer) next(ctx context.Context) (some bool, err error) {
	dir := folder(w.Dir)
	event, again := w.state.Event, w.state.Event != ""
	switch {
	case again && w.lies() == gone && !w.late(): // it was taken between two looks
		h := client.Handover{Fabric: w.state.Fabric, Agent: w.Agent, Events: []string{event}}
		if err := w.Queue.AckKept(ctx, h); err != nil {
			return false, err
		}
		return true, w.forget()
	case !again && dir.has(FileName):
		return false, w.others()
	}
	a, parked, err := w.drain(ctx, event)
	if err != nil {
		return false, err
	}
	event = a.EventID
	sequence, strange := w.number(a)
	switch {
	case again && strange: // the queue it came from is gone, and only the file is left
		return false, w.forget()
	case a.Content == "":
		w.Queue.Done(ctx, event, doneTime)  // what was told before is to be said only
		if w.state.Parked = parked; again { // it went out elsewhere
			if _, err := dir.move(FileName, withdrawnName); err != nil {
				return false, err
			}
			return false, w.forget()
		}
		return false, nil
	}
	if err := w.put(show(a), sequence, parked); err != nil {
		return false, err
	}
	return true, w.attend(ctx)
}

// drain takes along the text of an event; an empty one is for the next text, and where
// there is none for one that is parked. It returns which are parked then.
func (w *Writer) drain(ctx context.Context, event string) (a *schema.DrainAnswer, parked []string, err error) {
	parked = w.state.Parked
	if event != "" {
		a, err = w.Queue.DrainOne(ctx, w.Agent, w.Session, event)
		return a, parked, err
	}
	if len(parked) < maxParked {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, nil, err
		}
		w.unanswered = id.String()
		if a, err = w.Queue.DrainOne(ctx, w.Agent, w.Session, id.String()); err == nil {
			w.unanswered = ""
		}
		if err != nil || a.Content != "" || len(parked) == 0 {
			return a, parked, err
		}
	}
	a, err = w.Queue.DrainOne(ctx, w.Agent, w.Session, parked[0])
	return a, slices.Clone(parked[1:]), err
}

// others sees to what lies there and is no text of this queue: it comes first, if it is
// a text that counts.
func (w *Writer) others() error {
	dir, t := folder(w.Dir), &Text{}
	err := readFile(dir.path(FileName), t)
	if errors.Is(err, errGarbage) || err == nil && t.expired(time.Now()) {
		return errors.Join(err, dir.drop(FileName))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// late reports whether what lay there counts no more: readers may have taken it away
// unread.
func (w *Writer) late() bool { return !w.state.Expires.IsZero() && time.Now().After(w.state.Expires) }

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

// show is a text that is about to be put there.
func show(a *schema.DrainAnswer) shown {
	s := shown{answer: a, since: time.Now()}
	for p := range strings.SplitSeq(a.Matcher, "|") {
		if p = strings.TrimSpace(p); p != "" {
			s.parts = append(s.parts, p)
		}
	}
	if len(s.parts) == 0 {
		s.parts = []string{"*"}
	}
	if a.ExpiresIn > 0 {
		s.ends = s.since.Add(a.ExpiresIn.Std())
	}
	return s
}

// put writes a text and puts it where readers look. parked are the events whose texts
// wait then.
func (w *Writer) put(s shown, sequence uint64, parked []string) error {
	dir, a := folder(w.Dir), s.answer
	if _, err := dir.move(FileName, withdrawnName); err != nil {
		return err
	}
	expires := time.Now().Add(fileFor)
	if !s.ends.IsZero() && s.ends.Before(expires) {
		expires = s.ends
	}
	t := Text{Inject: Inject{a.Content, strategy(a)}, Matcher: s.parts[s.part], Sequence: sequence, Expires: expiring(expires)}
	if len(s.parts) > 1 {
		t.Matchers = a.Matcher
	}
	w.at("taken along")
	if err := writeFile(dir.path(tmpName), &t); err != nil {
		return err
	}
	w.at("written")
	st := &w.state
	st.Event, st.Item, st.Last, st.Back, st.Expires, st.Parked = a.EventID, a.Sequence, sequence, false, expires, parked
	if err := w.save(); err != nil {
		return err
	}
	w.at("noted")
	if err := dir.drop(withdrawnName); err != nil {
		return err
	}
	_, err := dir.move(tmpName, FileName)
	w.shown = s
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

// forget notes that nothing of the queue lies there any more.
func (w *Writer) forget() error {
	dir := folder(w.Dir)
	w.state.Event, w.state.Back, w.state.Expires = "", false, time.Time{}
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

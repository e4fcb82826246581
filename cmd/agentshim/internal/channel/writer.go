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
	lookEvery = 50 * time.Millisecond  // how often a writer checks whether a reader took the text
	askEvery  = 500 * time.Millisecond // how often it asks the fabric for a text while the queue is empty
	holdEvery = 10 * time.Second       // how often it renews the lease, which lasts 30 s
	// doneTime limits an acknowledgement. One that takes longer is stored and sent later.
	doneTime = 2 * time.Second
	// fileFor is the time until a text expires without its writer. It ends before the lease does.
	fileFor   = 25 * time.Second
	turnFor   = time.Second // how long a text for certain tools stays current while others wait
	maxParked = 16          // limits the texts that wait for a tool call
	// takingTime limits how long a writer that stops waits for a reader that is delivering.
	takingTime = time.Second
)

// A Queue is the source of the texts.
type Queue interface {
	// DrainOne leases the next item under an event. The same event returns the same item.
	DrainOne(ctx context.Context, agent, session, event string) (*schema.DrainAnswer, error)
	// Hold renews the leases of events.
	Hold(ctx context.Context, agent string, events ...string) error
	// Release returns the items of events to the queue: they are due again.
	Release(ctx context.Context, agent string, events ...string) error
	// Done acknowledges the item of an event, within a time or later.
	Done(ctx context.Context, event string, within time.Duration) bool
	// AckKept acknowledges the items that an earlier process delivered.
	AckKept(ctx context.Context, h client.Handover) error
}

// A Writer puts the texts for one agent into a folder.
type Writer struct {
	Queue          Queue
	Agent, Session string
	Dir            string
	// Stderr receives messages for people.
	Stderr io.Writer
	// Step receives each point in the life of a text. Only tests set it, to die there.
	Step func(point string)

	state state
	shown shown
	// unanswered is the event of a request without an answer: a text may be leased under it.
	unanswered string
}

type shown struct {
	answer *schema.DrainAnswer
	parts  []string  // the alternatives of its matcher
	part   int       // the index of the one in the file
	since  time.Time // when the writer put that one there
	ends   time.Time // when the item expires; zero: never
}

// Run writes texts until ctx ends, and then withdraws those that the agent did not get.
func (w *Writer) Run(ctx context.Context) error {
	dir := folder(w.Dir)
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return err
	}
	unlock, ok, err := dir.lock(writerLock)
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

func (w *Writer) next(ctx context.Context) (some bool, err error) {
	dir := folder(w.Dir)
	event, again := w.state.Event, w.state.Event != ""
	switch {
	case again && w.lies() == gone && !w.late(): // a reader took it while no writer looked
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
	case again && strange: // the fabric of the text is gone, and only the file remains
		return false, w.forget()
	case a.Content == "":
		w.Queue.Done(ctx, event, doneTime)  // the agent has the text; only the acknowledgement is missing
		if w.state.Parked = parked; again { // another process delivered it
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

// drain leases the text of an event; empty: the next one. It returns the events that remain parked.
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

// others removes a file that is not from this queue, unless it is a valid text, which comes first.
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

// late reports whether the text has expired, so that readers may have removed it unread.
func (w *Writer) late() bool { return !w.state.Expires.IsZero() && time.Now().After(w.state.Expires) }

// number returns the sequence of a text here, which grows with each other text. strange: the answer is from
// another fabric than the one before.
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

// show returns the state of a text that the writer is about to put into the folder.
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

// put writes a text and renames it to the name that readers look for. parked are the texts that wait.
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

type where int

const (
	gone where = iota
	lying
	back // not put there yet, or withdrawn
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

// forget stores that no text of the queue is in the folder.
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

func rest(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

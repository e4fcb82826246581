package channel

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// attend waits until the text is taken, and keeps it, and those that are parked, for as
// long as that takes. While a text that is for some tools only lies there, others have
// their turn. When ctx ends it is taken back.
func (w *Writer) attend(ctx context.Context) error {
	hold := time.NewTicker(holdEvery)
	defer hold.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		switch w.lies() {
		case gone:
			return w.taken(ctx)
		case back: // it counted no more, and a reader took it back
			return nil
		case lying:
		}
		var err error
		select {
		case <-look.C:
			err = w.turn(ctx)
		case <-hold.C:
			err = w.hold(ctx)
		case <-ctx.Done():
			return w.stop()
		}
		if err != nil || w.state.Event == "" {
			return err
		}
	}
}

// hold renews the leases, and with them the text.
func (w *Writer) hold(ctx context.Context) error {
	events := append(slices.Clone(w.state.Parked), w.state.Event)
	if err := w.Queue.Hold(ctx, w.Agent, events...); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintf(w.Stderr, "agentshim: the text in %s may be delivered twice: %v\n", w.Dir, err)
		}
		return nil
	}
	return w.again(w.shown)
}

// turn gives way to the next part of the matcher, or to another text, once the one that
// lies there had its time. What the fabric would have dropped by now is taken back.
func (w *Writer) turn(ctx context.Context) error {
	s := w.shown
	switch now := time.Now(); {
	case !s.ends.IsZero() && !now.Before(s.ends):
		return w.expire(ctx)
	case s.parts[0] == "*" && len(s.parts) == 1 || now.Sub(s.since) < turnFor:
		return nil
	}
	s.since = time.Now()
	if s.part++; s.part < len(s.parts) {
		return w.again(s)
	}
	a, parked, err := w.drain(ctx, "")
	switch {
	case err != nil:
		w.shown.since = s.since
		return nil //nolint:nilerr // the broker is asked again at the next turn
	case a.Content == "":
		if len(parked) < len(w.state.Parked) { // it went out elsewhere
			w.state.Parked = parked
			return w.save()
		}
		w.shown.since = s.since
		if s.part = 0; len(s.parts) > 1 {
			return w.again(s)
		}
		return nil
	}
	sequence, strange := w.number(a)
	if strange {
		return nil // another fabric answers: the lease of this one's text ends by itself
	}
	changed, err := w.change(show(a), sequence, append(slices.Clone(parked), w.state.Event))
	if err == nil && !changed && !slices.Contains(w.state.Parked, a.EventID) {
		w.state.Parked = append(slices.Clone(w.state.Parked), a.EventID) // it is leased by now
		err = w.save()
	}
	return err
}

// again puts the text that lies there there once more, as it is to be read now.
func (w *Writer) again(s shown) error {
	_, err := w.change(s, w.state.Last, w.state.Parked)
	return err
}

// change puts another text, or the same once more, in the place of the one that lies there,
// unless a reader tells that now, or took it away.
func (w *Writer) change(s shown, sequence uint64, parked []string) (changed bool, err error) {
	back, unlock, err := w.takeBack()
	defer unlock()
	if err != nil || !back {
		return false, err
	}
	return true, w.put(s, sequence, parked)
}

// takeBack takes back what lies there, unless a reader has it. unlock lets readers look.
func (w *Writer) takeBack() (back bool, unlock func(), err error) {
	dir := folder(w.Dir)
	unlock, ok, err := lock(dir.path(readerLock))
	if err != nil || !ok {
		return false, func() {}, err
	}
	back, err = dir.move(FileName, withdrawnName)
	return back, unlock, err
}

// expire takes back what the fabric ends when its lease does.
func (w *Writer) expire(ctx context.Context) error {
	back, unlock, err := w.takeBack()
	defer unlock()
	if err != nil || !back {
		return err
	}
	return w.giveBack(ctx)
}

// giveBack has the fabric give the text to another asker, or end it.
func (w *Writer) giveBack(ctx context.Context) error {
	if err := w.Queue.Release(ctx, w.Agent, w.state.Event); err != nil {
		fmt.Fprintf(w.Stderr, "agentshim: the fabric delivers the text of %s again when its lease ends: %v\n", w.Dir, err)
	}
	return w.forget()
}

// stop takes back what lies there, and gives back all that is held, for the next asker of the
// agent. A text that was taken at that moment counts as read.
func (w *Writer) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), takingTime)
	defer cancel()
	back, unlock, err := w.takeBack()
	for err == nil && !back && w.lies() == lying && ctx.Err() == nil { // a reader that tells it now takes it away at once
		rest(ctx, lookEvery)
		back, unlock, err = w.takeBack()
	}
	defer unlock()
	if err == nil && !back && w.lies() == lying { // it hangs, and may have told it
		back, err = folder(w.Dir).move(FileName, withdrawnName)
	}
	if err != nil {
		return err
	}
	if w.at("taken back"); back {
		return nil
	}
	return w.taken(context.Background())
}

// release gives back all that is held and does not lie there, when the writer ends: it is due
// again at once, for the process that tells the agent next.
func (w *Writer) release() error {
	events := slices.Clone(w.state.Parked)
	if w.unanswered != "" {
		events = append(events, w.unanswered)
	}
	if w.state.Event != "" && w.lies() == back {
		w.state.Back, events = true, append(events, w.state.Event)
		if err := w.save(); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), doneTime)
	defer cancel()
	if err := w.Queue.Release(ctx, w.Agent, events...); err != nil {
		fmt.Fprintf(w.Stderr, "agentshim: the fabric delivers the text of %s again when its lease ends: %v\n", w.Dir, err)
	}
	return folder(w.Dir).drop(withdrawnName)
}

// taken says that the agent has the text. Of one that counted no more that is not known:
// it comes again.
func (w *Writer) taken(ctx context.Context) error {
	if w.late() {
		return w.giveBack(ctx)
	}
	w.at("gone")
	w.Queue.Done(context.WithoutCancel(ctx), w.state.Event, doneTime)
	w.at("acknowledged")
	return w.forget()
}

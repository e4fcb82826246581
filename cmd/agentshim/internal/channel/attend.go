package channel

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// attend waits until a reader takes the text, and renews the leases. Other texts take turns with one for
// certain tools only. When ctx ends, attend withdraws the text.
func (w *Writer) attend(ctx context.Context) error {
	hold := time.NewTicker(holdEvery)
	defer hold.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		switch w.lies() {
		case gone:
			return w.taken(ctx)
		case back: // the text had expired, and a reader withdrew it
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

// hold renews the leases, and then the expiry in the file.
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

// turn replaces the current text after turnFor, and withdraws a text that has expired in the fabric.
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
		if len(parked) < len(w.state.Parked) { // another process delivered it
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
		return nil // another fabric answers; the lease of its text expires by itself
	}
	changed, err := w.change(show(a), sequence, append(slices.Clone(parked), w.state.Event))
	if err == nil && !changed && !slices.Contains(w.state.Parked, a.EventID) {
		w.state.Parked = append(slices.Clone(w.state.Parked), a.EventID) // the writer leases it now
		err = w.save()
	}
	return err
}

// again writes the current text again, with a new expiry and the current part of its matcher.
func (w *Writer) again(s shown) error {
	_, err := w.change(s, w.state.Last, w.state.Parked)
	return err
}

// change replaces the current text by s, unless a reader is delivering it or has removed it.
func (w *Writer) change(s shown, sequence uint64, parked []string) (changed bool, err error) {
	back, unlock, err := w.takeBack()
	defer unlock()
	if err != nil || !back {
		return false, err
	}
	return true, w.put(s, sequence, parked)
}

// takeBack withdraws the current text, unless a reader is delivering it. unlock lets readers in again.
func (w *Writer) takeBack() (back bool, unlock func(), err error) {
	dir := folder(w.Dir)
	unlock, ok, err := dir.lock(readerLock)
	if err != nil || !ok {
		return false, unlock, err
	}
	back, err = dir.move(FileName, withdrawnName)
	return back, unlock, err
}

// expire withdraws the current text, whose item has expired, and releases it.
func (w *Writer) expire(ctx context.Context) error {
	back, unlock, err := w.takeBack()
	defer unlock()
	if err != nil || !back {
		return err
	}
	return w.giveBack(ctx)
}

// giveBack releases the text to the fabric, which delivers it elsewhere or drops it.
func (w *Writer) giveBack(ctx context.Context) error {
	if err := w.Queue.Release(ctx, w.Agent, w.state.Event); err != nil {
		fmt.Fprintf(w.Stderr, "agentshim: the fabric delivers the text of %s again when its lease ends: %v\n", w.Dir, err)
	}
	return w.forget()
}

// stop withdraws the current text. If a reader removes it at that moment, it counts as delivered.
func (w *Writer) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), takingTime)
	defer cancel()
	back, unlock, err := w.takeBack()
	for err == nil && !back && w.lies() == lying && ctx.Err() == nil { // a reader that is delivering it removes it soon
		rest(ctx, lookEvery)
		back, unlock, err = w.takeBack()
	}
	defer unlock()
	if err == nil && !back && w.lies() == lying { // the reader hangs; it may have delivered the text
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

// release returns the texts that the writer still leases when it ends, so that they are due again at once.
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

// taken acknowledges the text that a reader removed. A reader may have removed an expired one unread.
func (w *Writer) taken(ctx context.Context) error {
	if w.late() {
		return w.giveBack(ctx)
	}
	w.at("gone")
	w.Queue.Done(context.WithoutCancel(ctx), w.state.Event, doneTime)
	w.at("acknowledged")
	return w.forget()
}

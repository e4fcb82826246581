package record

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// What may wait in memory: entries that were put, and messages that are full.
const (
	maxWaiting      = 8192
	maxWaitingBytes = 32 << 20
	maxBatches      = 32
	// flushEvery is how long a message waits to be filled.
	flushEvery = 200 * time.Millisecond
	// encodeEvery is how many entries wait until lines are made of them: so few that
	// what they are about is still at hand for the processor.
	encodeEvery = 64
	// maxEmpty is how many messages' room is kept.
	maxEmpty = 2
	// closeFor bounds how long a stop waits for a stream that takes nothing.
	closeFor = 5 * time.Second
)

// Options say what is written down, and who hears of it.
type Options struct {
	// Broker is whose verdicts these are.
	Broker string
	// Limits are what the stream keeps.
	Limits Limits
	// Content adds what was asked about, and what the hooks made of it.
	Content bool
	// Rules say where secrets are, beside what looks like one; nil: nowhere.
	Rules *redact.Rules
	// Host is the name of an agent's machine, if it is known; nil: it never is.
	Host func(agent string) string
	// Written and Dropped hear of how many records the stream has, and how many it
	// will never have; nil: nobody does.
	Written func(n int)
	Dropped func(cause Cause, n int)
	// Logger hears of trouble; nil is silence.
	Logger *slog.Logger
}

// A Writer writes records. Make it with [Start], and end it with [Writer.Close].
type Writer struct {
	o       Options
	js      jetstream.JetStream
	subject string
	clock   kv.Clock
	encoder *encoder

	wake    chan struct{} // there is something to encode
	due     chan struct{} // the oldest entry has waited long enough
	flush   *time.Timer   // says so
	batches chan *batch
	empty   chan []byte // room of messages that the stream has, for the next ones
	closing chan struct{}
	ended   chan struct{}
	life    context.Context //nolint:containedctx // of the writing, not of one request
	stop    context.CancelFunc
	lost    atomic.Uint64 // records that were dropped, and no message has said so
	taken   atomic.Int64  // records that were taken to be encoded, and are not stored

	mu      sync.Mutex // guards what follows
	waiting []Entry
	bytes   int
	armed   bool // flush will say that something is due
	closed  bool
}

// Start begins to write. It does not wait for the stream, which is made when there is
// something to write to it; only a broker's name that no subject can have is an error.
func Start(js jetstream.JetStream, o Options) (*Writer, error) {
	subject, err := bus.RecordSubject(o.Broker)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Written == nil {
		o.Written = func(int) {}
	}
	if o.Dropped == nil {
		o.Dropped = func(Cause, int) {}
	}
	w := &Writer{
		o: o, js: js, subject: subject, encoder: newEncoder(&o),
		wake: make(chan struct{}, 1), due: make(chan struct{}, 1), batches: make(chan *batch, maxBatches), empty: make(chan []byte, maxEmpty), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	w.flush = time.AfterFunc(flushEvery, func() { tick(w.due) })
	w.flush.Stop()
	w.life, w.stop = context.WithCancel(context.Background())
	go w.encode()
	go w.publish()
	return w, nil
}

// Put takes an entry over, if there is room for it. It never waits.
func (w *Writer) Put(e Entry) {
	if !w.o.Content {
		e.Input, e.Output, e.Value = nil, nil, nil
	}
	size := e.size()
	w.mu.Lock()
	if w.closed || len(w.waiting) >= maxWaiting || len(w.waiting) > 0 && w.bytes+size > maxWaitingBytes {
		w.mu.Unlock()
		w.drop(Full, 1)
		return
	}
	w.waiting = append(w.waiting, e)
	w.bytes += size
	n, first := len(w.waiting), !w.armed
	w.armed = true
	w.mu.Unlock()
	if first {
		w.flush.Reset(flushEvery)
	}
	if n == encodeEvery {
		tick(w.wake)
	}
}

// Waiting is how many entries were put that the stream does not have yet.
func (w *Writer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) + int(w.taken.Load())
}

// tick says something that need not be said twice.
func tick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *Writer) drop(cause Cause, n int) {
	if n > 0 {
		w.lost.Add(uint64(n))
		w.o.Dropped(cause, n)
	}
}

// encode fills messages until the writer is closed.
func (w *Writer) encode() {
	defer close(w.batches)
	p, spare := newPage(), []Entry(nil)
	number := uint64(0)
	send := func() {
		if p.lines > 0 {
			number++
			b := &batch{lines: p.lines, number: number}
			b.data = p.tear(w.room())
			w.batches <- b
		}
	}
	for more := true; more; {
		due := false
		select {
		case <-w.wake:
		case <-w.due:
			due = true
		case <-w.closing:
			due, more = true, false
		}
		taken := w.take(spare[:0], due)
		w.fill(p, taken, send)
		clear(taken) // what they hold is not kept for the next ones
		spare = taken
		if due {
			send()
		}
	}
}

// take takes what waits, and leaves room. If that is because something is due, it will
// all be sent.
func (w *Writer) take(room []Entry, due bool) []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.waiting
	w.waiting, w.bytes = room, 0
	w.taken.Add(int64(len(taken)))
	w.armed = w.armed && !due
	return taken
}

// fill puts entries on a page, and sends it whenever it is full. It waits while too
// many wait to be published, and entries wait in front of it meanwhile.
func (w *Writer) fill(p *page, entries []Entry, send func()) {
	ahead, most := time.Until(w.clock.Now()), min(maxBytes, int(w.js.Conn().MaxPayload())/2)
	for i := range entries {
		if w.life.Err() != nil { // the stop took too long
			w.taken.Add(int64(i - len(entries)))
			w.drop(Stopped, len(entries)-i)
			return
		}
		line, err := w.encoder.line(&entries[i], ahead)
		if err != nil {
			w.o.Logger.Warn("a record cannot be written", "event_id", entries[i].Record.EventID, "error", err)
			w.taken.Add(-1)
			w.drop(Large, 1)
			continue
		}
		if !p.takes(len(line), most) {
			send()
		}
		p.add(line)
	}
}

// room is room for a message.
func (w *Writer) room() []byte {
	select {
	case data := <-w.empty:
		return data
	default:
		return nil
	}
}

// keep keeps the room of a message that nobody has any more.
func (w *Writer) keep(b *batch) {
	if cap(b.data) == 0 || cap(b.data) > maxBytes+maxBytes/2 {
		return
	}
	select {
	case w.empty <- b.data[:0]:
	default:
	}
}

// Close writes what was put, unless the stream takes nothing for some seconds or ctx
// ends; what it does not have then is counted as dropped. Nothing can be put any more.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	w.mu.Unlock()
	if !again {
		close(w.closing)
	}
	ctx, cancel := context.WithTimeout(ctx, closeFor)
	defer cancel()
	select {
	case <-w.ended:
	case <-ctx.Done():
		w.stop()
		<-w.ended
	}
	w.flush.Stop()
	w.stop()
	return nil
}

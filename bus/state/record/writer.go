package record

import (
	"cmp"
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

// The limits of entries and messages in memory.
const (
	maxWaiting      = 8192
	maxWaitingBytes = 32 << 20
	maxBatches      = 32
	// flushEvery is how long a message waits for more lines.
	flushEvery = 200 * time.Millisecond
	// encodeEvery is how many entries are encoded together: few enough that their data is still in the cache
	// of the processor.
	encodeEvery = 64
	// maxEmpty bounds the buffers that are reused.
	maxEmpty = 2
	// closeFor bounds the wait of Close for a stream that stores nothing.
	closeFor = 5 * time.Second
)

// Options configure a Writer.
type Options struct {
	// Broker is the broker of the verdicts.
	Broker string
	// Limits are the limits of the stream.
	Limits Limits
	// Content adds the input of hooks, and their changes.
	Content bool
	// Rules name secrets, in addition to detected ones; nil: none.
	Rules *redact.Rules
	// Host returns the name of an agent's machine, empty if it is unknown; nil: always unknown.
	Host func(agent string) string
	// Written and Dropped are called with the number of stored and of dropped records; nil: no call.
	Written func(n int)
	Dropped func(cause Cause, n int)
	// Logger logs failures; nil: no log.
	Logger *slog.Logger
}

// A Writer stores records. Start one with [Start], and end it with [Writer.Close].
type Writer struct {
	o       Options
	js      jetstream.JetStream
	subject string
	clock   kv.Clock
	encoder *encoder

	wake    chan struct{} // there is something to encode
	due     chan struct{} // the oldest entry has waited long enough
	flush   *time.Timer   // fires due
	batches chan *batch
	empty   chan []byte // buffers of stored messages, for reuse
	closing chan struct{}
	ended   chan struct{}
	life    context.Context //nolint:containedctx // of the writer, not of one request
	stop    context.CancelFunc
	lost    atomic.Uint64 // dropped records that no message has counted yet
	taken   atomic.Int64  // records that are being encoded or stored

	mu      sync.Mutex // guards the following fields
	waiting []Entry
	bytes   int
	armed   bool // flush is running
	closed  bool
}

// Start starts a writer. It does not wait for the stream. A broker name that is invalid in a subject is an error.
func Start(js jetstream.JetStream, o Options) (*Writer, error) {
	subject, err := bus.RecordSubject(o.Broker)
	if err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
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

// Put adds an entry, or drops it if too many wait. It never blocks.
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

// Waiting returns the number of entries that are not stored yet.
func (w *Writer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) + int(w.taken.Load())
}

// tick sends a signal, unless one is pending.
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
			b.data = p.tear(w.buffer())
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
		clear(taken) // release their contents
		spare = taken
		if due {
			send()
		}
	}
}

// take returns the waiting entries, and replaces them with an empty buffer; due: all of them will be sent.
func (w *Writer) take(empty []Entry, due bool) []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.waiting
	w.waiting, w.bytes = empty, 0
	w.taken.Add(int64(len(taken)))
	w.armed = w.armed && !due
	return taken
}

// fill adds entries to a page, and sends full pages. It blocks while too many messages wait.
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

// buffer returns a buffer for a message.
func (w *Writer) buffer() []byte {
	select {
	case data := <-w.empty:
		return data
	default:
		return nil
	}
}

// recycle keeps the buffer of a stored message for reuse.
func (w *Writer) recycle(b *batch) {
	if cap(b.data) == 0 || cap(b.data) > maxBytes+maxBytes/2 {
		return
	}
	select {
	case w.empty <- b.data[:0]:
	default:
	}
}

// Close stores the waiting entries. If that takes longer than closeFor, or ctx ends, it drops the rest. Put has no effect
// afterwards.
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

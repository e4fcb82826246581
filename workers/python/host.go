package python

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// host is one process that runs functions.
type host struct {
	pool    *pool
	process *child.Process
	orders  *os.File // what it reads
	answers *os.File // what it writes
	output  *os.File // what functions print
	done    chan struct{}

	writing sync.Mutex // one frame at a time

	mu      sync.Mutex             // guards what follows
	waiting map[uint32]chan answer // by request; nil when the host is lost
	number  uint32                 // of the last request
	cause   error                  // why it was stopped
	left    bool                   // the pool asked it to leave
	reaped  bool
	called  bool // it has seen events

	seat // guarded by the pool
}

// lostError says that a request has no answer, because its host ended.
type lostError struct {
	why  error
	sent bool // the host may have begun the request
}

func (e *lostError) Error() string { return "was lost: " + e.why.Error() }
func (e *lostError) Unwrap() error { return e.why }

// exitWait is how long a host may take to exit after it closed its pipe, and how long
// its last answers are read after it exited.
const exitWait = 100 * time.Millisecond

func newHost(p *pool) *host {
	return &host{pool: p, done: make(chan struct{}), waiting: make(map[uint32]chan answer)}
}

// start starts the process. The caller may wait for its end in done.
func (h *host) start() error {
	ours, theirs, err := openPipes()
	if err != nil {
		return err
	}
	defer child.CloseAll(theirs)
	at := &h.pool.site
	argv := []string{at.interpreter, "-c", bootstrap}
	p, err := child.Start(h.pool.runner.guard, child.Spec{Argv: argv, Dir: at.workdir, Env: at.env, Files: theirs})
	if err != nil {
		child.CloseAll(ours)
		return fmt.Errorf("%s could not be started: %w", at.interpreter, err)
	}
	h.orders, h.answers, h.output = ours[0], ours[1], ours[2]
	h.mu.Lock()
	h.process = p
	if h.cause != nil { // stop was called before the start
		p.Kill()
	}
	h.mu.Unlock()
	go h.live()
	return nil
}

// openPipes makes the pipes of a host. It returns the worker's ends of orders, answers
// and output, and the five files that the host opens.
func openPipes() (ours, theirs []*os.File, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	all := []*os.File{null}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			child.CloseAll(all)
			return nil, nil, err
		}
		all = append(all, r, w)
	}
	reads, orders, answers, writes, output, prints := all[1], all[2], all[3], all[4], all[5], all[6]
	return []*os.File{orders, answers, output}, []*os.File{null, prints, prints, reads, writes}, nil
}

// live follows the host until it has ended, and then fails all waiting requests.
func (h *host) live() {
	defer close(h.done)
	var tail child.Tail
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		_, _ = io.Copy(io.MultiWriter(&tail, printer{h}), child.OnlyReader{Reader: h.output})
	}()
	err := h.listen()
	h.stop(err)
	<-h.process.Exited()
	h.mu.Lock()
	h.reaped = true
	h.mu.Unlock()
	state, _ := h.process.Reap()
	_ = h.output.SetReadDeadline(time.Now().Add(exitWait)) // for what has left the group
	<-printed
	child.CloseAll([]*os.File{h.orders, h.answers, h.output})
	h.lose(h.exitReason(state, tail.Bytes()))
}

// listen delivers answers to their requests, until the host ends (nil) or writes
// data that is not an answer.
func (h *host) listen() error {
	defer h.watchExit()()
	for r := bufio.NewReaderSize(h.answers, 64<<10); ; {
		number, body, err := readFrame(r)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			return h.awaitExit()
		}
		if err != nil {
			return err
		}
		var a answer
		if err := schema.Unmarshal(body, &a); err != nil {
			return fmt.Errorf("it wrote data into the answer pipe that is not an answer: %w", err)
		}
		if !h.deliver(number, a) {
			return errors.New("it wrote an answer without a request")
		}
	}
}

// watchExit ends the reading of answers soon after the host has exited, because a
// process that the host started may keep the pipe open.
func (h *host) watchExit() (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-over:
		case <-h.process.Exited():
			_ = h.answers.SetReadDeadline(time.Now().Add(exitWait))
		}
	}()
	return func() { close(over) }
}

// awaitExit gives a host that closed its end the time to exit by itself.
func (h *host) awaitExit() error {
	select {
	case <-h.process.Exited():
		return nil
	case <-time.After(exitWait):
		return errors.New("it closed the answer pipe")
	}
}

// deliver passes an answer on, and reports whether it had a request.
func (h *host) deliver(number uint32, a answer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	got, ok := h.waiting[number]
	if ok {
		delete(h.waiting, number)
		got <- a
	}
	return ok
}

// lose fails all waiting requests, because the host cannot answer them.
func (h *host) lose(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, got := range h.waiting {
		got <- answer{lost: &lostError{why: why, sent: true}}
	}
	h.waiting, h.cause = nil, why
}

// exitReason says why a host ended. It includes the host's last output only if the host has
// served no call, because another agent must not see the output of a call. A host that
// was killed may have ended by itself before.
func (h *host) exitReason(state *os.ProcessState, output []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	words := ""
	if !h.called {
		words = child.LastWords(output)
	}
	switch {
	case h.cause != nil && (state == nil || state.ExitCode() < 0):
		return fmt.Errorf("its host process was killed: %w%s", h.cause, words)
	case state == nil:
		return errors.New("its host process was lost")
	case state.ExitCode() < 0:
		return fmt.Errorf("its host process was ended by a signal (%v)%s", state, words)
	}
	return fmt.Errorf("its host process exited with code %d%s", state.ExitCode(), words)
}

// unexpected returns why the host ended, or nil if the pool asked it to leave.
func (h *host) unexpected() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left || errors.Is(h.cause, errClosed) {
		return nil
	}
	return h.cause
}

// stop kills the host and all processes that it started. A nil cause means that it ended
// by itself.
func (h *host) stop(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.cause = cause
	}
	switch {
	case h.process == nil || h.reaped:
	case cause != nil:
		h.process.KillAll()
	default:
		h.process.Kill()
	}
}

// leave lets an idle host exit, and kills it if it does not do so in time.
func (h *host) leave() {
	h.mu.Lock()
	h.left = true
	h.mu.Unlock()
	h.writing.Lock()
	_ = h.orders.Close()
	h.writing.Unlock()
	select {
	case <-h.done:
	case <-time.After(h.pool.runner.wait.grace):
		h.stop(errors.New("no hook needs it, and it did not leave in time"))
		<-h.done
	}
}

// send sends a request. Its answer, or the loss of its host, arrives in got.
func (h *host) send(within time.Duration, body ...[]byte) (number uint32, got <-chan answer, err error) {
	answers := make(chan answer, 1)
	h.mu.Lock()
	if h.waiting == nil {
		h.mu.Unlock()
		<-h.done
		return 0, nil, &lostError{why: h.cause}
	}
	h.number++
	number = h.number
	h.waiting[number] = answers
	h.mu.Unlock()
	return number, answers, h.write(within, frame(number, body...))
}

// write writes one frame, within a time that begins with its turn; 0 means no limit. A
// host that does not read a whole frame is killed.
func (h *host) write(within time.Duration, b []byte) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	var until time.Time
	if within > 0 {
		until = time.Now().Add(within)
	}
	_ = h.orders.SetWriteDeadline(until)
	_, err := h.orders.Write(b)
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EPIPE) {
		err = nil // how it ended says more
	}
	h.stop(err)
	<-h.done
	return &lostError{why: h.cause}
}

// printer logs what functions print.
type printer struct{ host *host }

func (p printer) Write(b []byte) (int, error) {
	log := p.host.pool.runner.log
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return len(b), nil
	}
	log.Debug("hook printed", "pid", p.host.process.Pid(), "text", child.Readable(b[:min(len(b), maxPrint)]))
	return len(b), nil
}

// maxPrint is how many bytes of one output are logged.
const maxPrint = 4 << 10

package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
)

const (
	// beatEvery is how often a judging daemon sends a heartbeat, and silence how long a client waits for one.
	beatEvery = 250 * time.Millisecond
	silence   = 2 * time.Second
)

// Reasons why the daemon did not answer. The client then asks the fabric itself.
var (
	ErrAbsent = errors.New("no daemon is running") // means that no daemon is running
	// ErrElsewhere means that a daemon is running, but cannot judge this call.
	ErrElsewhere = errors.New("the daemon is not usable")
	// ErrLost means that the daemon got the request and did not answer.
	ErrLost = errors.New("the daemon did not answer")
	// ErrTaken is returned if another daemon serves the socket.
	ErrTaken = errors.New("another daemon already serves this socket")
)

type line interface {
	io.ReadWriteCloser
	SetDeadline(t time.Time) error
}

// talk sends a request and waits for the answer until the deadline, or until the heartbeats stop.
func talk(l line, request *frame.Message, deadline time.Time) (*frame.Message, error) {
	patience := min(silence, time.Until(deadline)/3)
	if err := l.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err := frame.Write(l, request); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	for {
		until := time.Now().Add(patience)
		if until.After(deadline) {
			until = deadline
		}
		if err := l.SetDeadline(until); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLost, err)
		}
		m, err := frame.Read(l, frame.MaxAnswer)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrLost, err)
		case m.Kind == frame.Answer:
			return m, nil
		case m.Kind == frame.Elsewhere:
			return nil, fmt.Errorf("%w: %s", ErrElsewhere, m.Words[wordReason])
		case m.Kind != frame.Beat:
			return nil, fmt.Errorf("%w: it sent %q, which is not an answer", ErrLost, m.Kind)
		}
	}
}

// written reports that the agent has the answer, even if this process ends at once.
func written(l line) {
	_ = l.SetDeadline(time.Now().Add(time.Second))
	_ = frame.Write(l, &frame.Message{Kind: frame.Written}) // if it is lost, the fabric sends the items again
}

const (
	wordReason      = "reason"
	wordRuntime     = "runtime"
	wordEvent       = "event"
	wordAgent       = "agent"
	wordID          = "id"
	wordLeft        = "left"
	wordUnreachable = "unreachable"
	wordUnreadable  = "unreadable"
	wordWorkspaces  = "workspaces"
	wordNATS        = "nats"
	wordCreds       = "creds"
	wordKey         = "key"
	wordByID        = "by-id"
	wordPair        = "pair"
	wordBorrow      = "borrow"
	wordApart       = "apart"
	wordMute        = "mute"
	wordMidTurn     = "mid-turn"
	wordNative      = "native"
	wordUnjudged    = "unjudged"
	wordStderr      = "stderr"
	wordExit        = "exit"
	wordEnv         = "env:" // and the variable's name
)

// words returns the pairs of name and value whose value is not empty.
func words(pairs ...string) map[string]string {
	all := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all[pairs[i]] = pairs[i+1]
		}
	}
	return all
}

func flag(yes bool) string {
	if yes {
		return "true"
	}
	return ""
}

// patience limits how long a client may take to read an answer.
const patience = 5 * time.Second

// A talker is the daemon's end of a connection.
type talker struct {
	conn *net.UnixConn
	mu   sync.Mutex // guards writing
}

// say sends a message, and reports whether it was written completely.
func (t *talker) say(m *frame.Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.conn.SetWriteDeadline(time.Now().Add(patience))
	return frame.Write(t.conn, m) == nil
}

func (t *talker) elsewhere(why string) {
	t.say(&frame.Message{Kind: frame.Elsewhere, Words: words(wordReason, why)})
}

// beating sends heartbeats until stop is called.
func (t *talker) beating() (stop func()) {
	var mu sync.Mutex // guards stopped, and is held while a beat is written
	stopped := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(beatEvery, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped && t.say(&frame.Message{Kind: frame.Beat}) {
			timer.Reset(beatEvery)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// heardWritten waits for the report that the agent has the answer.
func (t *talker) heardWritten() bool {
	_ = t.conn.SetReadDeadline(time.Now().Add(lastWord))
	m, err := frame.Read(t.conn, frame.MaxRequest)
	return err == nil && m.Kind == frame.Written
}

// maxLog limits the messages for people from one call, in bytes.
const maxLog = 64 << 10

// logged collects the messages for people from one call, up to maxLog.
type logged struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b[:min(len(b), max(0, maxLog-l.text.Len()))])
	return len(b), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

package daemon

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
)

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

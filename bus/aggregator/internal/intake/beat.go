package intake

import (
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A callBeat sends a heartbeat every 250 ms for one call that is still alive. Nearly all calls end
// long before the first one.
type callBeat struct {
	send  func(reply string)
	reply string

	mu    sync.Mutex // guards the following fields
	timer *time.Timer
	ended bool
}

// startBeat sends the first beat after a time.
func startBeat(first time.Duration, reply string, send func(reply string)) *callBeat {
	b := &callBeat{send: send, reply: reply}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(first, b.beat)
	return b
}

func (b *callBeat) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.send(b.reply)
		b.timer.Reset(schema.BeatEvery)
	}
}

// end ends the beats. None is sent after it has returned.
func (b *callBeat) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.timer.Stop()
}

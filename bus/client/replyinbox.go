package client

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// answersKept limits the answers that wait: one of the first attempt, and one of every
// aggregator that received the second.
const answersKept = 16

// A replyInbox receives the messages for one call. After a call that was asked once and
// answered, another call reuses it: only a harmless beat may still arrive, and servers
// route known subjects faster. After any other call an answer may arrive late, so its
// inbox is not reused.
type replyInbox struct {
	reply   string // its subject, which ends with the token
	token   string
	answers chan *nats.Msg
	beats   chan struct{}
	denied  chan error // receives why the bus does not permit the request
	// silence fires when the next beat is overdue; nil: not used yet.
	silence *time.Timer
}

// takeInbox returns an unused inbox.
func (c *Client) takeInbox() *replyInbox {
	if l, ok := c.inboxes.Get().(*replyInbox); ok {
		empty(l.beats)
		empty(l.denied)
		return l
	}
	token := strconv.FormatUint(c.next.Add(1), 36)
	return &replyInbox{token: token, reply: c.inbox + token, answers: make(chan *nats.Msg, answersKept), beats: make(chan struct{}, 1), denied: make(chan error, 1)}
}

// empty removes a leftover value from a channel with a capacity of one.
func empty[T any](c chan T) {
	select {
	case <-c:
	default:
	}
}

// returnInbox makes the inbox of an ended call reusable, if no answer can arrive on it.
func (c *Client) returnInbox(a *ask, answered bool) {
	if answered && a.attempt == 1 {
		c.inboxes.Put(a.replyInbox)
	}
}

// expect starts the timer for the next beat.
func (l *replyInbox) expect(due time.Time) (silence <-chan time.Time) {
	if l.silence == nil {
		l.silence = time.NewTimer(time.Until(due))
	} else {
		l.silence.Reset(time.Until(due))
	}
	return l.silence.C
}

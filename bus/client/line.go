package client

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// answersKept bounds the answers that wait to be compared: one of the first
// attempt, and one of every aggregator that heard the second.
const answersKept = 16

// A line receives the messages for one call. After a call that was asked once and
// answered, another call uses its line: only a harmless beat may still arrive on it, and
// servers route known subjects faster. On any other line an answer may arrive late, so
// that it is not used again.
type line struct {
	reply   string // its subject, which ends with the token
	token   string
	answers chan *nats.Msg
	beats   chan struct{}
	denied  chan error // the bus does not permit what was asked
	// silence goes off when the next sign of life is overdue; nil: nobody waited yet.
	silence *time.Timer
}

// line is one that nobody else uses.
func (c *Client) line() *line {
	if l, ok := c.lines.Get().(*line); ok {
		empty(l.beats)
		empty(l.denied)
		return l
	}
	token := strconv.FormatUint(c.next.Add(1), 36)
	return &line{token: token, reply: c.inbox + token, answers: make(chan *nats.Msg, answersKept), beats: make(chan struct{}, 1), denied: make(chan error, 1)}
}

// empty takes out what the call before left in a channel of one.
func empty[T any](c chan T) {
	select {
	case <-c:
	default:
	}
}

// leave leaves the line of a call that ended to others, if nothing can come on it.
func (c *Client) leave(a *ask, answered bool) {
	if answered && a.attempt == 1 {
		c.lines.Put(a.line)
	}
}

// expect begins to wait for the next sign of life, until then.
func (l *line) expect(due time.Time) (silence <-chan time.Time) {
	if l.silence == nil {
		l.silence = time.NewTimer(time.Until(due))
	} else {
		l.silence.Reset(time.Until(due))
	}
	return l.silence.C
}

package aggregator

import (
	"sync/atomic"
	"time"
)

// mute is how it is told of requests that name a subject for their answer which is no
// inbox (bus.IsInbox). They are not answered, for the answer might be a request of
// somebody else; whoever asks so by mistake, with an inbox prefix of his own, waits in vain
// and cannot be told there. One in a while is logged: whoever likes can send any number.
type mute struct{ logged atomic.Int64 }

// unheard logs such a request, unless one was a short while ago.
func (a *Aggregator) unheard(subject, reply string) {
	if reply == "" {
		return // only published: nobody waits
	}
	now := time.Now().UnixNano()
	last := a.mute.logged.Load()
	if last != 0 && now-last < int64(logEvery) || !a.mute.logged.CompareAndSwap(last, now) {
		return
	}
	a.opt.Logger.Warn("cannot answer a request, because its reply subject is not an inbox; give its client an inbox prefix such as _INBOX or _INBOX_me",
		"subject", subject, "reply", reply[:min(len(reply), maxLoggedReply)])
}

// maxLoggedReply bounds what is logged of a subject that anybody may choose.
const maxLoggedReply = 200

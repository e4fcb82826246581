// Package early has the local daemon answer `agentshim hook` before the rest of
// the program is even initialised.
//
// A hook's process lives for one message, and the packages that the other
// commands need, nats.go first of all, take longer to initialise than the
// message takes. Go initialises a package as soon as all that it imports is
// ready. This one imports next to nothing, so that its turn comes before
// theirs: that is why it makes its calls to the system itself, has no package
// below it, and must not get one: even package syscall is initialised after ten
// others. A test holds that, and others hold that what it says is what the daemon's
// own client would say.
//
// It takes only calls that it understands to the last word. Any other, and
// every call that the daemon does not answer, is left to the program, with what
// was read of stdin, the event's id and the time at which the process began: see [Taken].
package early

// A Start is what happened before the program began.
type Start struct {
	// Elapsed is how long the process had lived by then, in nanoseconds.
	Elapsed int64
	// Read: stdin was read. Payload is what was on it.
	Read    bool
	Payload []byte
	// Slow: it did not end in time. Large: there is more than an event may have.
	Slow, Large bool
	// EventID is the id under which the daemon was asked.
	EventID string
	// Lost is why the daemon, which is there, did not answer; empty: it was not asked.
	Lost string
}

// Taken is what was done before the program began; the zero Start: nothing was.
func Taken() Start { return taken }

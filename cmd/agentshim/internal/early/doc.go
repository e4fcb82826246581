// Package early lets the local daemon answer `agentshim hook` before Go initialises the rest
// of the program.
//
// A hook's process handles one message. The packages of the other commands, above all
// nats.go, take longer to initialise than the message takes. Go initialises a package as
// soon as all its imports are ready. This package imports next to nothing, so Go initialises
// it before them. It therefore makes its own system calls and must not import other packages
// of the module; even package syscall is initialised after ten others. A test checks the
// imports, and other tests check that it sends the same bytes as the daemon's own client.
//
// It handles only calls that it understands completely. It leaves every other call, and
// every call that the daemon does not answer, to the program, together with the bytes read
// from stdin, the event's id and the start time of the process: see [Taken].
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

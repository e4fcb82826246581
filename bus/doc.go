// Package bus is how the fabric's processes talk: the names of subjects, the
// headers of messages, and connections to NATS. It links no server, so that a
// program that runs once per tool call stays small; the server is in
// bus/embedded.
//
// Everything here is safe for many goroutines. To follow an event, read
// subject.go (where it is asked), token.go (how a name becomes part of a
// subject), header.go (what travels beside the body) and conn.go.
package bus

// Package bus connects the fabric's processes: it defines the subjects, the headers of
// messages, and the connections to NATS. It does not link the NATS server, which is in
// bus/server, so that a program that runs once per tool call stays small.
//
// Everything here is safe for concurrent use. To follow an event, read subject.go (its
// subject), token.go (how a name becomes part of a subject), header.go (its headers) and
// conn.go.
package bus

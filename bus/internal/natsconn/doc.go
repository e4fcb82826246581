// Package natsconn is the network side of a nats.go connection: it combines the writes of
// many goroutines into one, publishes without the client's buffer, gives a slow server more
// time at each attempt to connect, and leaves a server that hangs. With 16 callers this saves
// a fifth of the CPU time of a call.
//
// It relies on behaviour of nats.go that its documentation does not promise. The tests check
// each point, and TestTheVersionOfNATSWasTried fails for a version that is not listed there.
//
//  1. Options.CustomDialer of a connection is the value that the program set.
//  2. The client makes its next connection only after it has given up the former one.
//  3. It calls SetDeadline with a time before it reads from a new connection, with the zero
//     time at the end of the handshake, and never again. No read has another deadline.
//  4. Each Write of the client on a connection without TLS consists of whole operations of
//     the NATS protocol, so that other operations may be written between two of them.
//  5. Status is CONNECTED and Buffered is 0 only if the client wrote all that was published
//     before, and its subscriptions.
//
// [Config.Plain] uses the client without all of this.
package natsconn

// Package daemon is the resident shim: one process per user and machine, with one connection
// to the fabric, which judges for the hooks, proxies and agent loops of all agents there.
// Several deliveries of one call become one event.
//
// No hook depends on the daemon. A hook asks the fabric itself, under the same event id, if
// it finds no daemon, a daemon of another fabric or another user, or one that dies or falls
// silent during the call. A hook that names no fabric uses the daemon's fabric, which the
// daemon's card names, and its policy.
//
// A call over the socket ([Hook], [Client]) is one connection: the request, beats while the
// daemon judges, the answer, and the confirmation that the agent has the answer. Items that
// waited for the agent count as delivered when that confirmation arrives; without it, the
// fabric delivers them again. Over HTTP ([Server.Handler]) they count as delivered when the
// daemon has written the answer to a runtime, or when a loop acknowledges them.
//
// server.go takes calls, flight.go makes one event of several deliveries, http.go and loop.go
// serve HTTP, client.go and hook.go are the client side, process_unix.go makes sockets and
// starts a daemon if none runs.
package daemon

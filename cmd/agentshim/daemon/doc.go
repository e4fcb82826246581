// Package daemon is the shim that stays: one process per user and machine, with
// one connection to the fabric, that judges for the hooks, proxies and loops of
// all agents there. A hook that finds it saves the connecting; deliveries of
// one call by several ways are one event; runtimes and loops that speak HTTP
// need no process per call at all.
//
// Nobody depends on it. A hook that finds no daemon, one of another fabric, one
// of another user, or one that dies or falls silent while it judges, asks the
// fabric itself under the same event id, and follows its own policy where
// nobody answers.
//
// A call over the socket ([Hook], [Client]) is one connection: the request, beats while it is
// judged, the answer, and the word that the agent has the answer. What
// was waiting for the agent counts as handed over when that word came; without
// it, it comes again. Over HTTP ([Server.Handler]) it counts as handed over when the
// answer to a runtime was written, and when a loop says so.
//
// server.go takes calls, flight.go makes one event of several deliveries,
// http.go is the other door, client.go and hook.go are the other end, start.go
// starts a daemon where none is.
package daemon

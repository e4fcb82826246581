// Package cluster has three brokers that are one, each on a host of its own where the
// machine gives such (package lan), under the load of a fleet whose every answer is
// checked, and lets go wrong what can: a broker is killed, stopped, restarted, cut off
// from the others in both directions or in one; all are restarted one after the other,
// also while configurations change; agents are frozen while a broker is cut off.
//
// run.go has one part follow the other, each under a load of its own, so that clients are
// spread over all brokers again. No fault is done before all brokers have everything
// again; where that takes long the rest of a part is done under a further load. steps.go
// is what is done in a part and streams.go who leads then, and what is not whole;
// teller.go puts injections into the queue all the time, by way of each broker, and
// freeze.go freezes. document.go says what came of it.
package cluster

// Package embedded runs a nats-server with JetStream inside the broker's
// process, so that the broker alone is a whole system. Only the broker links
// it. It needs a Unix: the data directory is guarded by flock, so that two
// brokers never write one store.
//
// Programs in the same process use [Server.Connect], which passes no socket;
// others use [Server.ClientURL]. [Server.Close] must be called: it is what
// releases the data directory.
package embedded

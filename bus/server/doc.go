// Package server runs a nats-server with JetStream inside the broker's process, so that
// the broker alone is a whole system. Only the broker links it. It needs a Unix system: a
// file lock guards the data directory, so that two brokers never write to one store.
//
// Programs in the same process use [Server.Connect], which needs no socket; others use
// [Server.ClientURL]. Call [Server.Close] to release the data directory.
//
// Only this module imports it.
package server

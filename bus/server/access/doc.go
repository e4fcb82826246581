// Package access defines who may do what on the bus. A role and its names become the
// subjects on which a NATS user may publish and subscribe. The package is data only:
// package realm makes credentials from it, and the NATS server enforces them.
// schema/wire.md describes the same in words.
//
// A user may do only what the lists allow. Four rules keep users from gaining more.
//
//   - Each user except a broker receives answers on its own inbox, [Inbox]. No other
//     user may subscribe to it.
//   - Only brokers and operators may send requests to JetStream. JetStream answers on
//     any subject, so a user could make it publish where the user may not. Workers
//     therefore ask brokers.
//   - Brokers answer only on inboxes (bus.IsInbox), for the same reason.
//   - Only brokers see the inbox of another user. A message does not name its sender,
//     so a user that knew an inbox could direct answers to it. Workers answer on
//     subjects that are not inboxes (bus.Replies).
//
// An operator is an exception: it uses JetStream itself, to store long texts and to read
// the record. It can direct JetStream's answers to any subject, even into buckets that it
// may not write. Keep an operator's credentials as safe as a broker's.
//
// All functions are safe for concurrent use.
//
// Only this module imports it.
package access

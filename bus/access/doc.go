// Package access says who may do what on the bus: a role and the names it is
// for become the subjects on which a NATS user may publish and subscribe. It
// is data and touches nothing; package realm below it makes credentials of it,
// and a server holds everybody to them. schema/wire.md has the same in words.
//
// What nobody is given, nobody has: there are only lists of what is allowed.
// Three rules keep who has little from getting more.
//
//   - Everybody but a broker hears answers on an inbox of its own, [Inbox],
//     which nobody else may listen to.
//   - Nobody but a broker and an operator may create consumers or answer on
//     subjects of their choice: JetStream would publish for them where they
//     may not publish themselves.
//   - Brokers answer only on inboxes (bus.IsInbox), for the same reason.
package access

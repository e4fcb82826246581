// Package access says who may do what on the bus: a role and the names it is
// for become the subjects on which a NATS user may publish and subscribe. It
// is data and touches nothing; package realm below it makes credentials of it,
// and a server holds everybody to them. schema/wire.md has the same in words.
//
// What nobody is given, nobody has: there are only lists of what is allowed.
// Four rules keep who has little from getting more.
//
//   - Everybody but a broker hears answers on an inbox of its own, [Inbox],
//     which nobody else may listen to.
//   - Nobody but a broker and an operator may ask JetStream for anything: it
//     answers on any subject, and would publish for them where they may not
//     publish themselves. Workers are told by brokers what they need to know.
//   - Brokers answer only on inboxes (bus.IsInbox), for the same reason.
//   - Nobody but a broker learns of somebody else's inbox: a message does not
//     say who sent it, so that an answer could be had sent there. What workers
//     are asked is answered on subjects that are no inboxes (bus.Replies).
//
// What is left is an operator's. To store long texts and to read the record it
// asks JetStream itself, and may say where the answers go, and the messages of
// its consumers: into buckets, too, which it may not write otherwise. NATS
// permits subjects of requests and knows nothing of their replies, and brokers
// in between would have to pass on all of those texts. So an operator's credentials
// are to be kept like a broker's.
package access

// Package objects stores content that is too large for messages, in a JetStream object
// store.
//
// The digest of its content is an object's name. The same content is therefore stored
// once, and no object ever changes. An object lives for eight days; storing it again after
// more than a day starts its life again. Parts of conversations ([Histories]) have a
// smaller store, in which they live for two hours and are renewed after one. Reads go to
// the stream's leader, and return content only after its digest was verified.
//
// The format is that of the NATS client library, so its tools can list and read the
// objects. The writing differs. Each chunk is acknowledged before the next is sent, because
// the server drops what many clients send faster than its disk can write. Of several
// clients that store the same object, one wins, and the others remove their chunks.
//
// Everything here is safe for concurrent use.
//
// Only this module imports it.
package objects

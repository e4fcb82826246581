// Package objects keeps content that is too large for messages, in a JetStream
// object store.
//
// An object is named by the digest of its content. So the same content is
// stored once, whoever puts it, and nothing is ever changed. An object lives
// for eight days; when it is put again after more than a day, its life begins
// anew. Parts of conversations ([Histories]) have a smaller store of their own, in
// which they live for two hours and are renewed after one. What is read is what the stream's leader holds, and is handed on only
// after its digest was found right.
//
// The format is that of the client library's object stores, whose tools can
// therefore list and get the objects. What differs is how they are written: each
// chunk is acknowledged before the next is sent, since the server drops what a
// crowd sends faster than the disk takes it; and of several who put the same
// object, one wins, and the others take their chunks away again.
package objects

// Package kv is what all that keeps state in JetStream key-value buckets has in
// common: to open a bucket patiently, to read from its leader, to write only
// where nothing changed meanwhile, to follow all changes of it in memory
// ([Mirror]), and to tell the time as the server does ([Clock]).
//
// An ordinary get of a key is answered by any replica, also by one that does not
// know yet: nothing here makes one. A refused compare-and-set may be spurious:
// read again, then try again a little later ([Retry], [Again]).
//
// Everything here is safe for many goroutines.
package kv

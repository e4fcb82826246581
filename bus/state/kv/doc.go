// Package kv is the common part of packages that store state in JetStream key-value buckets. It opens
// a bucket and waits for it, reads from the bucket's leader, writes by compare-and-set, follows all
// changes in memory ([Mirror]), and estimates the server's time ([Clock]).
//
// Any replica answers an ordinary get, even one that is behind, so nothing here uses it. A
// refused compare-and-set may be spurious: read again, then try again a little later
// ([Retry], [Again]).
//
// Everything here is safe for concurrent use.
//
// Only this module imports it.
package kv

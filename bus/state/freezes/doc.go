// Package freezes keeps whose tool calls are refused until further notice: one key of
// one bucket, changed by compare-and-set only, so that of two operators at once none
// undoes what the other did. Every broker mirrors it in memory and goes on with what
// it knows while the bucket can not be reached and the others wait for it; one that they may
// not have waited for makes sure first, by a second key that it writes.
//
// Everything here is safe for many goroutines and many processes.
package freezes

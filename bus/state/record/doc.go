// Package record keeps what was decided: a JetStream stream with one line per
// verdict, which is bounded by age and by size and loses its oldest lines first.
//
// Writing never holds a call back, and never fails one. [Writer.Put] takes a line
// over into memory that is bounded in number and in bytes, and comes back; off the
// path the lines are put together and packed, many to a message ([Batch]), and published
// one message after the other, each until the stream has it. While the stream can not be
// reached the memory fills, and what then comes is dropped and counted; the next
// message says how much that was.
//
// One message may hold 1024 lines or 256 KiB, and waits 200 ms at most to be filled:
// the embedded server syncs each message to the disk before it acknowledges it, which
// no disk does for each verdict (BenchmarkStore compares that with other ways). Lines
// are packed here and not by the server, which would move them about at their full
// size half a dozen times, and write them twice: with eight hooks that is two thirds
// of all that a record takes (BenchmarkWrite). So a broker that is killed loses what it judged in
// its last 200 ms, and what was on its way; one that is stopped loses nothing.
//
// [Read] goes through what is kept in its order and then follows what comes, both on
// the one stream: there is no gap between them, and nothing comes twice. A [Filter]
// picks lines.
//
// Everything here is safe for many goroutines.
package record

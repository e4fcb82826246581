// Package record stores the verdicts: a JetStream stream with one line per verdict, which is
// bounded by age and by size and loses its oldest lines first.
//
// Writing never delays or fails a call. [Writer.Put] copies a line into bounded memory and
// returns. In the background the writer packs many lines into one message ([Batch]), and
// publishes one message after the other. While the stream cannot be reached, the memory
// fills, and the writer drops and counts further lines. The next message carries that count.
//
// One message has at most 1024 lines or 256 KiB, and waits at most 200 ms for more lines.
// The embedded server syncs each message to disk before it acknowledges it, which no disk
// can do for each verdict (BenchmarkStore). The writer compresses the lines itself, because
// the server would copy them at full size several times (BenchmarkWrite). A broker that is
// killed loses the verdicts of its last 200 ms and the messages under way. A broker that is
// stopped loses none.
//
// [Read] reads the stored lines in order and then follows new ones, on one stream, without
// gaps and duplicates. A [Filter] selects lines.
//
// [Unjudged] remembers the calls that no broker judged, so that each counts once.
//
// Everything here is safe for concurrent use.
//
// Only this module imports it.
package record

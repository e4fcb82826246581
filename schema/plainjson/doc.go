// Package plainjson writes and reads the JSON of most calls faster than the codec: a table
// made once from a struct's type replaces what the codec decides for every value.
//
// A message is plain if its strings need no escapes, and members of kinds that the table does not
// have are absent. Everything else is left to the codec: [Codec.Append] and [Codec.Read] then
// report false. A plain message is written as the same bytes, and read as the same value.
//
// Start with table.go, then write.go and read.go. scan.go finds values without decoding them.
//
// Only this module imports it.
package plainjson

// Package channel delivers texts to agents through a file, for runtimes whose hooks cannot
// inject text but whose tools can return it. The [Writer] puts one text at a time into a
// folder. The process that makes the agent's tool calls, such as the [Reader] of `agentshim
// mcp`, appends the text to a result and removes the file.
//
// The writer holds a text under a lease of the fabric, and renews the lease until the file
// is gone; then the text counts as delivered. The file has an expiry 25 s ahead, which the
// writer renews with the lease, so that readers ignore a text whose writer is gone. A text
// for certain tools only gives way to others after 1 s and returns later; the writer holds
// at most 16 of them. When the writer ends, it returns undelivered texts to the queue, for
// the agent's next turn. The files in the folder are
//
//	hook_post_tool_use.json            the current text
//	hook_post_tool_use.json.tmp        a text before its rename to the name above
//	hook_post_tool_use.json.withdrawn  a text that the writer withdrew
//	.hookfabric-writer.json            state for the next writer
//	.hookfabric-writer.lock            lock of the one writer
//	.hookfabric-reader.lock            lock of the reader that takes the text
//
// Each step of either side is one rename or one removal, so that the next process knows
// where the previous one died. An agent can therefore get a text twice: if a reader died
// between delivery and removal, or if the file disappeared after its expiry, because
// third-party readers remove expired texts unread.
// No text is lost. The first hook or writer that finds a file without a valid text removes
// the file.
package channel

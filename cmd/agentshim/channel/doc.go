// Package channel hands texts to agents through a file, for runtimes whose tools
// can be told things and whose hooks can not: the [Writer] puts one text at a
// time into a folder, and whoever makes the agent's tool calls, such as the
// [Reader] of `agentshim mcp`, appends it to a result and takes the file away.
//
// A text is the writer's, under a lease of the fabric that it renews, until the
// file is gone: then it counts as handed over. A text nobody took stays in the
// fabric's queue. The files in the folder are
//
//	hook_post_tool_use.json            the text that lies there
//	hook_post_tool_use.json.tmp        one that was not put there yet
//	hook_post_tool_use.json.withdrawn  one that was taken back
//	.hookfabric-writer.json            what the next writer must know
//	.hookfabric-writer.lock            held by the one writer
//	.hookfabric-reader.lock            held by who takes the text
//
// and each step of either side is one rename or one removal, so that the next
// process knows where the one before it died. A text may then come twice, if its
// reader died between telling it and taking it away; none is lost.
package channel

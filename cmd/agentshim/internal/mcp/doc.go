// Package mcp is the proxy between an MCP client and an MCP server, as `agentshim mcp` runs
// it. It asks the fabric about every tools/call before the server sees it, and about the
// result before the client sees it. All other messages pass unchanged, byte for byte and in
// order, even while a call waits for its verdict.
//
// The proxy works on raw JSON-RPC and interprets only what it needs, so that it cannot lose
// members it does not know. Therefore it does not use an MCP library: those decode messages into
// types and encode them again. If two readers could read a message differently, the proxy
// applies the stricter reading.
//
// [Pipe] is the proxy over stdin and stdout, [Relay] the one over HTTP. Both ask a [Guard].
// [Process] and [HTTPClient] connect a Pipe to a server.
package mcp

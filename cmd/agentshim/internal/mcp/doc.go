// Package mcp is the proxy between an MCP client and an MCP server, as `agentshim mcp` runs
// it. It asks the fabric about every tools/call before the server sees it, and about the
// result before the client sees it. All other messages pass unchanged, byte for byte and in
// order, also while a call is held.
//
// The proxy speaks raw JSON-RPC and interprets as little of MCP as possible, so that it
// cannot lose unknown parts. If two readers could read a message differently, it applies the
// stricter reading.
//
// [Pipe] is the proxy over stdin and stdout, [Relay] the one over HTTP. Both judge calls
// with a [Guard].
package mcp

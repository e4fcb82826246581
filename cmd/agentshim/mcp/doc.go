// Package mcp stands between an MCP client and an MCP server, as `agentshim mcp`.
// It gets every tools/call judged before the server sees it, and has its result
// looked at before the client does. All else passes as the bytes that it is, in
// the order in which it came, also while a call is held.
//
// It speaks raw JSON-RPC and knows as little of MCP as it can: what it does not
// know it can not lose. A message that two readers could read differently is
// held to be what is guarded most.
//
// [Pipe] is the proxy over stdin and stdout, [Relay] the one over HTTP; both have
// calls judged by a [Guard].
package mcp

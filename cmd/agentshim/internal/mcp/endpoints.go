package mcp

import (
	"cmp"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// The endpoints of a connection are its client and its server, as the handshake describes them.
type endpoints struct {
	session string // identifies the connection if the client sends no session

	mu         sync.Mutex // guards the fields below
	client     string     // the client's name
	canAsk     bool       // the client can ask its user
	server     string     // the server's name
	initialize string     // the key of the initialize request that waits for its answer
}

func newEndpoints() *endpoints {
	p := &endpoints{}
	if id, err := uuid.NewV7(); err == nil {
		p.session = id.String()
	}
	return p
}

// readClient learns from a message of the client.
func (p *endpoints) readClient(m *message) {
	if m.method != methodInitialize {
		return
	}
	params := m.child("params")
	info, caps := params.child("clientInfo"), params.child("capabilities")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.canAsk, p.initialize = info.text("name"), canElicit(&caps), exactKey(m.id)
}

// readServer learns from a response of the server.
func (p *endpoints) readServer(m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.initialize == "" || p.initialize != exactKey(m.id) {
		return
	}
	p.initialize = ""
	result := m.child("result")
	info := result.child("serverInfo")
	p.server = info.text("name")
}

// copyClient takes over the client of a connection that had no session yet.
func (p *endpoints) copyClient(from *endpoints) {
	from.mu.Lock()
	client, canAsk, initialize := from.client, from.canAsk, from.initialize
	from.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.canAsk, p.initialize = client, canAsk, initialize
}

// canElicit reports whether a client can show its user a form; in older protocols, by an empty object.
func canElicit(capabilities *object) bool {
	v := capabilities.get("elicitation")
	if v.Kind() != '{' {
		return false
	}
	e, err := readObject(v)
	return err == nil && (e.get("form") != nil || e.get("url") == nil)
}

// From 2026-07-28 on, the protocol has no handshake: each request has these members in _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// A caller is the agent that makes a call, and the server that it calls.
type caller struct {
	agent, session, runtime, server, toolUse string
	canAsk                                   bool
	// modern: the protocol has no requests of servers. Questions for the user are in results.
	modern bool
}

// caller returns the caller of a call with that _meta.
func (p *endpoints) caller(meta *object, g *Guard) caller {
	p.mu.Lock()
	client, server := p.client, p.server
	c := caller{session: p.session, canAsk: p.canAsk}
	p.mu.Unlock()
	if meta.text(metaVersion) != "" {
		caps, info := meta.child(metaCapabilities), meta.child(metaClient)
		c.modern, c.canAsk, client = true, canElicit(&caps), cmp.Or(info.text("name"), client)
	}
	c.runtime = runtimeOf(client)
	turn := meta.child("x-codex-turn-metadata")
	c.session = cmp.Or(meta.text("sessionId"), meta.text("threadId"), turn.text("session_id"), c.session)
	c.toolUse = cmp.Or(meta.text("claudecode/toolUseId"), meta.text("callId"))
	c.agent = cmp.Or(g.Agent, c.runtime+"-"+c.session)
	c.server = cmp.Or(g.Server, server, g.Fallback, "server")
	return c
}

// runtimeOf returns the runtime whose MCP client has a name.
func runtimeOf(client string) string {
	switch client {
	case "claude-code":
		return "claude"
	case "codex-mcp-client":
		return "codex"
	case "gemini-cli-mcp-client":
		return "gemini"
	}
	for prefix, runtime := range map[string]string{"qwen": "qwen", "cursor": "cursor", "copilot": "copilot", "github-copilot": "copilot", "opencode": "opencode"} {
		if strings.HasPrefix(strings.ToLower(client), prefix) {
			return runtime
		}
	}
	return "mcp"
}

// toolName returns the name under which hooks of the fabric know a tool of the server.
func (c *caller) toolName(tool string) string {
	switch c.runtime {
	case "gemini":
		return "mcp_" + runtimeName(c.server) + "_" + runtimeName(tool)
	case "cursor":
		return "MCP:" + tool
	}
	return "mcp__" + runtimeName(c.server) + "__" + runtimeName(tool)
}

// hookName returns the name under which the runtime's own hooks know a tool of the server.
func (c *caller) hookName(tool string) string {
	switch c.runtime {
	case "copilot":
		return runtimeName(c.server) + "-" + runtimeName(tool)
	case "opencode":
		return runtimeName(c.server) + "_" + runtimeName(tool)
	}
	return c.toolName(tool)
}

// runtimeName replaces the characters of a name that runtimes replace.
func runtimeName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

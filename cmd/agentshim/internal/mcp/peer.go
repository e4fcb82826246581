package mcp

import (
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/schema"
)

// A peer is what is known of one connection: who the client is, what it can do,
// and what the server calls itself.
type peer struct {
	session string // of the connection, where the client names none

	mu      sync.Mutex // guards what follows
	client  string     // its name, as it says
	asks    bool       // it can ask its user
	server  string     // its name, as it says
	opening string     // the key of the initialize that the server has not answered yet
}

// newPeer is a connection of which nothing is known.
func newPeer() *peer {
	p := &peer{}
	if id, err := uuid.NewV7(); err == nil {
		p.session = id.String()
	}
	return p
}

// hears takes in what the client says.
func (p *peer) hears(m *message) {
	if m.method != methodInitialize {
		return
	}
	params := m.inner("params")
	info, caps := params.inner("clientInfo"), params.inner("capabilities")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.asks, p.opening = info.text("name"), canAsk(&caps), m.key()
}

// heard takes in what the server says.
func (p *peer) heard(m *message) {
	if !m.response() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening == "" || p.opening != m.key() {
		return
	}
	p.opening = ""
	result := m.inner("result")
	info := result.inner("serverInfo")
	p.server = info.text("name")
}

// adopt takes over what was known before a session had its id.
func (p *peer) adopt(from *peer) {
	from.mu.Lock()
	client, asks, opening := from.client, from.asks, from.opening
	from.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.asks, p.opening = client, asks, opening
}

// canAsk reports whether a client can show its user a form. Before there were
// other ways to ask, an empty object meant that.
func canAsk(capabilities *object) bool {
	v := capabilities.get("elicitation")
	if v.Kind() != '{' {
		return false
	}
	e, err := readObject(v)
	return err == nil && (e.get("form") != nil || e.get("url") == nil)
}

// The members of _meta that the protocols of 2026-07-28 and later say with every
// request what clients said once before.
const (
	metaVersion = "io.modelcontextprotocol/protocolVersion"
	metaClient  = "io.modelcontextprotocol/clientInfo"
	metaCan     = "io.modelcontextprotocol/clientCapabilities"
)

// A caller is who makes a call.
type caller struct {
	agent, session, runtime, server, use string
	asks                                 bool
	// modern: its protocol has no requests of servers. What it is to ask its user
	// goes with the result, and the user's answer with another call.
	modern bool
}

// caller is who makes a call with that _meta.
func (p *peer) caller(meta *object, g *Guard) caller {
	p.mu.Lock()
	client, server := p.client, p.server
	c := caller{session: p.session, asks: p.asks}
	p.mu.Unlock()
	if meta.text(metaVersion) != "" {
		caps, info := meta.inner(metaCan), meta.inner(metaClient)
		c.modern, c.asks, client = true, canAsk(&caps), first(info.text("name"), client)
	}
	c.runtime = runtimeOf(client)
	turn := meta.inner("x-codex-turn-metadata")
	c.session = first(meta.text("sessionId"), meta.text("threadId"), turn.text("session_id"), c.session)
	c.use = first(meta.text("claudecode/toolUseId"), meta.text("callId"))
	c.agent = first(g.Agent, c.runtime+"-"+c.session)
	c.server = first(g.Server, server, g.Fallback, "server")
	return c
}

// runtimeOf is the runtime that calls itself so as an MCP client.
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

// toolName is what hooks of the fabric know a tool of a server as.
func (c *caller) toolName(tool string) string {
	switch c.runtime {
	case "gemini":
		return "mcp_" + word(c.server) + "_" + word(tool)
	case "cursor":
		return "MCP:" + tool
	}
	return "mcp__" + word(c.server) + "__" + word(tool)
}

// hookName is what the runtime's own hooks call a tool of a server.
func (c *caller) hookName(tool string) string {
	switch c.runtime {
	case "copilot":
		return word(c.server) + "-" + word(tool)
	case "opencode":
		return word(c.server) + "_" + word(tool)
	}
	return c.toolName(tool)
}

// word is a name with nothing in it but what runtimes leave in names.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// facts are what policies for all runtimes know of a call.
func (c *caller) facts(e *schema.Event, tool string) {
	e.ToolKind, e.ToolArgs = schema.KindMCP, schema.MCPFacts(c.server, tool)
}

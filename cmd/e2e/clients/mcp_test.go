package clients_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
)

// echoServer is the argument by which this program is an MCP server with one tool.
const echoServer = "echo-server"

// serveEcho answers what clients ask of an MCP server on stdio.
func serveEcho(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID     jsontext.Value `json:"id"`
			Method string         `json:"method"`
			Params struct {
				Version   string `json:"protocolVersion"`
				Arguments struct {
					Message string `json:"message"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := schema.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		if m.ID == nil {
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		switch m.Method {
		case "initialize":
			answer["result"] = map[string]any{"protocolVersion": m.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "things", "version": "1"}}
		case "tools/list":
			answer["result"] = map[string]any{"tools": []any{map[string]any{"name": "echo", "description": "says it again",
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string"}}}}}}
		case "tools/call":
			answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "Echo: " + m.Params.Arguments.Message}}}
		case "ping":
			answer["result"] = map[string]any{}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "not known here"}
		}
		line, err := schema.Marshal(answer)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// proxied has the client call the echo server through the proxy, which asks the daemon.
func (h *home) proxied() {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.server(h, []string{program("agentshim"), "mcp", "--server", "things", "--agent", agent, "--", self, echoServer})
}

// TestAHookAndAProxyAreOneEvent: hooks are asked once about each name that the two have for the tool.
func TestAHookAndAProxyAreOneEvent(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		calls := filepath.Join(h.dir, "calls")
		script := h.write("hooks/count.sh", "#!/bin/sh\ncat >/dev/null\necho \"$1\" >>"+calls+"\n")
		f := startFabric(t, `hooks:
  PreToolUse:
    - {type: command, handler: `+script+`, args: [before], matcher: "*things*", readonly: true}
  PostToolUse:
    - {type: command, handler: `+script+`, args: [after], matcher: "*things*"}
`)
		h.proxied()
		h.install(byDaemon(), f)
		h.play(model.Turn{Calls: []model.Call{h.echo("hello")}}).mustSee(1, "Echo: hello")
		counted, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		want := "before after"
		if slices.Contains([]string{"copilot", "opencode"}, h.Name) {
			want = "before before after after"
		}
		if got := strings.Join(strings.Fields(string(counted)), " "); got != want {
			t.Errorf("the hooks were asked about %q, not %q", got, want)
		}
	}, "claude", "codex", "gemini", "copilot", "qwen", "opencode")
}

// TestAProxyNeedsNoHooks: a client without hooks, or with hooks that do not run,
// is held by the proxy alone.
func TestAProxyNeedsNoHooks(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		f := startFabric(t, `hooks:
  PreToolUse:
    - {type: builtin, handler: deny, matcher: "*things*", options: {reason: not while the tide is rising}}
`)
		h.serve(t, f, "--http", "")
		h.proxied()
		p := h.play(model.Turn{Calls: []model.Call{h.echo("hello")}})
		p.mustSee(1, "not while the tide is rising")
		if p.sees(1, "Echo: hello") {
			t.Error("the denied call reached the server")
		}
	})
}

// TestWhatIsInjectedAfterAProxiedToolComesOnce: not by the hook and by the proxy.
func TestWhatIsInjectedAfterAProxiedToolComesOnce(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		f := startFabric(t, `hooks:
  PostToolUse:
    - {type: builtin, handler: inject_text, matcher: "*things*", options: {text: mind the gap}}
`)
		h.proxied()
		h.install(byDaemon(), f)
		p := h.play(model.Turn{Calls: []model.Call{h.echo("hello")}})
		p.mustSee(1, "mind the gap")
		for _, r := range p.requests {
			if n := strings.Count(r.Texts(), "mind the gap"); n > 1 {
				t.Errorf("at turn %d the model sees it %d times", r.Turn, n)
			}
		}
	}, "claude", "codex", "gemini", "copilot", "qwen", "opencode")
}

package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// mcpServer is an MCP server on stdin and stdout, as small as can be: it echoes
// what its tools are called with, or ends when they say so.
func mcpServer() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 80<<20)
	for in.Scan() {
		var m struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
			Params struct {
				Name      string         `json:"name"`
				Arguments map[string]any `json:"arguments"`
			} `json:"params"`
		}
		if schema.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := map[string]any{}
		switch m.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "small", "version": "1"}}
		case "tools/call":
			if m.Params.Name == "exit" {
				os.Exit(7)
			}
			fmt.Fprintf(os.Stderr, "server: %s was called\n", m.Params.Name)
			result["content"] = []any{map[string]any{"type": "text", "text": fmt.Sprint(m.Params.Arguments["m"])}}
		}
		data, err := schema.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		if err != nil {
			return
		}
		if _, err := os.Stdout.Write(append(data, '\n')); err != nil {
			return
		}
	}
	if os.Getenv("STAYS") != "" {
		select {} // until it is killed
	}
}

// An mcpClient is an MCP client whose server is a process.
type mcpClient struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	said  *journal
	ended chan struct{}
	next  int
}

// mcpOver starts a command line as an MCP server, which ends with the test.
func mcpOver(t testing.TB, env []string, argv ...string) *mcpClient {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	c := &mcpClient{t: t, cmd: exec.Command(path, argv[1:]...), said: newJournal(), ended: make(chan struct{})}
	c.cmd.Env = append(cleaned(os.Environ()), env...)
	c.cmd.Dir = t.TempDir()
	c.cmd.Stderr = c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.out = w, bufio.NewReaderSize(r, 1<<20)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() { _ = c.cmd.Wait(); close(c.ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-c.ended
		_ = r.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", argv, lastLines(c.said.String(), 40))
		}
	})
	hello := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"2"}}`
	if r := c.ask("initialize", hello); !strings.Contains(r, "serverInfo") {
		t.Fatalf("%s answers %s", argv, r)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *mcpClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// ask makes a request and returns what stands behind its id in the answer.
func (c *mcpClient) ask(method, params string) string {
	c.t.Helper()
	c.next++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.next, method, params))
	return c.answer(c.next)
}

// answer returns the answer to a request, without its id, and skips other messages; empty: the server has ended.
func (c *mcpClient) answer(id int) string {
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			return ""
		}
		var m struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		if schema.Unmarshal([]byte(line), &m) == nil && m.Method == "" && fmt.Sprint(m.ID) == fmt.Sprint(id) {
			return strings.TrimSpace(line)
		}
	}
}

func (c *mcpClient) call(tool, arguments string) string {
	c.t.Helper()
	return c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

// code is the exit code, once the process has ended.
func (c *mcpClient) code() int {
	c.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-c.ended:
	case <-late.C:
		c.t.Fatalf("it did not end; it said:\n%s", c.said)
	}
	return c.cmd.ProcessState.ExitCode()
}

// through is the command line of a proxy before a server.
func through(url string, more ...string) []string {
	return append([]string{"agentshim", "mcp", "--agent", "coder", "--nats", url}, more...)
}

func TestHooksJudgeMCPCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "seen.sh", "#!/bin/sh\ncat >> "+dir+"/seen.json\necho >> "+dir+"/seen.json\n")
	config := write(t, dir, "hooks.yaml", `hooks:
  PreToolUse:
    - {type: builtin, handler: path_permission, fail_closed: true, options: {allow: ["`+work+`"]}}
    - {type: builtin, handler: audit_log, options: {file: "`+dir+`/audit.jsonl", content: true}}
  PostToolUse:
    - {type: command, handler: ./seen.sh, timeout: 20}
`)
	b := startBroker(t, "--config", config)
	c := mcpOver(t, nil, append(through(b.url, "--server", "files", "--state", dir), "--", "mcpserver")...)

	if r := c.call("read_file", `{"path":"`+work+`/a.txt","m":"the output"}`); !strings.Contains(r, `"text":"the output"`) || strings.Contains(r, "isError") {
		t.Errorf("allowed: %s", r)
	}
	r := c.call("read_file", `{"path":"/etc/shadow","m":"x"}`)
	if !strings.Contains(r, `"isError":true`) || !strings.Contains(r, "Blocked by policy: ") || !strings.Contains(r, "/etc/shadow") {
		t.Errorf("denied: %s", r)
	}
	if n := strings.Count(c.said.String(), "read_file was called"); n != 1 {
		t.Errorf("the server was called %d times", n)
	}
	// What hooks do beside judging they do here, too: they see name, arguments,
	// output and workspace.
	seen, err := os.ReadFile(filepath.Join(dir, "seen.json"))
	if err != nil {
		t.Fatal(err)
	}
	e := &schema.Event{}
	if err := schema.Unmarshal([]byte(strings.TrimSpace(string(seen))), e); err != nil {
		t.Fatalf("%s: %v", seen, err)
	}
	if e.ToolName != "mcp__files__read_file" || e.Cwd != c.cmd.Dir || e.Runtime != "claude" || e.AgentID != "coder" || e.ToolKind != schema.KindMCP ||
		!strings.Contains(string(e.ToolInput), "/a.txt") || string(e.ToolOutput) != `{"content":[{"text":"the output","type":"text"}]}` && string(e.ToolOutput) != `{"content":[{"type":"text","text":"the output"}]}` {
		t.Errorf("a hook saw %s", seen)
	}
	if audit, err := os.ReadFile(filepath.Join(dir, "audit.jsonl")); err != nil || !strings.Contains(string(audit), "mcp__files__read_file") {
		t.Errorf("audited: %s, %v", audit, err)
	}

	// Without the fabric, what a fail-closed hook guards is denied.
	b.kill()
	r = c.call("read_file", `{"path":"`+work+`/a.txt","m":"x"}`)
	if !strings.Contains(r, `"isError":true`) {
		t.Errorf("with the fabric gone: %s", r)
	}
	if n := strings.Count(c.said.String(), "read_file was called"); n != 1 {
		t.Errorf("the server was called %d times", n)
	}
}

func TestEitherEndOfAnMCPProxyMayEnd(t *testing.T) {
	t.Parallel()
	_, url := startNATS(t)
	t.Run("the server ends", func(t *testing.T) {
		t.Parallel()
		c := mcpOver(t, nil, append(through(url, "--timeout", "1s"), "--", "mcpserver")...)
		if r := c.call("exit", `{}`); r != "" {
			t.Errorf("%s", r)
		}
		if code := c.code(); code != 7 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("the client ends", func(t *testing.T) {
		t.Parallel()
		c := mcpOver(t, nil, append(through(url, "--timeout", "1s"), "--", "mcpserver")...)
		c.send(`{"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":"echo","arguments":{"m":"last words"}}}`)
		if err := c.in.Close(); err != nil {
			t.Fatal(err)
		}
		if r := c.answer(90); !strings.Contains(r, "last words") {
			t.Errorf("%s", r)
		}
		if code := c.code(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("a server that stays is killed", func(t *testing.T) {
		t.Parallel()
		c := mcpOver(t, []string{"STAYS=1"}, append(through(url), "--", "mcpserver")...)
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := c.code(); code != 128+int(syscall.SIGTERM) && code != 128+int(syscall.SIGKILL) {
			t.Errorf("exit code %d", code)
		}
	})
}

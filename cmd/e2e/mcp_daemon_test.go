package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A sharing is a fabric, the daemon of a machine before it, and what hooks were asked.
type sharing struct {
	t       *testing.T
	env     []string
	dir     string
	session string
}

// newSharing starts them. A hook before a call numbers it, so that the test notices a second event for one call;
// a hook after the call injects a text.
func newSharing(t *testing.T) (s *sharing, daemon *process, b *brokerProcess) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "before.sh", "#!/bin/sh\ncat >>"+dir+"/before.json\necho >>"+dir+"/before.json\n"+
		`printf '{"updated_input":{"m":"run %d"}}' $(grep -c hook_type `+dir+"/before.json)\n")
	write(t, dir, "after.sh", "#!/bin/sh\ncat >>"+dir+"/after.json\necho >>"+dir+"/after.json\n"+`echo '{"inject":{"content":"mind the gap","strategy":"tool_result"}}'`+"\n")
	config := write(t, dir, "hooks.yaml", `hooks:
  PreToolUse:
    - {type: command, handler: ./before.sh, timeout: 20, fail_closed: true}
  PostToolUse:
    - {type: command, handler: ./after.sh, timeout: 20}
`)
	b = startBroker(t, "--config", config)
	s = &sharing{t: t, dir: dir, session: "s1", env: []string{"HOOKFABRIC_NATS=" + b.url, "HOOKFABRIC_SOCKET=" + filepath.Join(dir, "d", "s"), "HOOKFABRIC_STATE=" + filepath.Join(dir, "state")}}
	daemon = startWith(t, append(s.env, "HOOKFABRIC_HTTP=127.0.0.1:0"), "agentshim", "serve")
	if err := eventually("the daemon listens", func() bool {
		_, err := os.Stat(filepath.Join(dir, "d", "s"))
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return s, daemon, b
}

// hook is what the client's own hook answers about a call.
func (s *sharing) hook(event, id, more string) string {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "agentshim", "hook", "--runtime", "claude", "--event", event)
	c.Env = append(cleaned(os.Environ()), s.env...)
	c.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":%q,"cwd":"/","hook_event_name":%q,"tool_name":"mcp__files__echo","tool_use_id":%q,%s}`, s.session, event, id, more))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	return string(out)
}

// asked is how often the hooks were asked before and after calls.
func (s *sharing) asked(before, after int) {
	s.t.Helper()
	for name, want := range map[string]int{"before": before, "after": after} {
		data, err := os.ReadFile(filepath.Join(s.dir, name+".json"))
		if err != nil && want > 0 {
			s.t.Fatal(err)
		}
		if got := strings.Count(string(data), "hook_type"); got != want {
			s.t.Errorf("hooks were asked %d times %s a call, not %d:\n%s", got, name, want, data)
		}
	}
}

func (s *sharing) proxy(more ...string) *mcpClient {
	return mcpOver(s.t, s.env, append(append([]string{"agentshim", "mcp", "--server", "files"}, more...), "--", "mcpserver")...)
}

// called is what the client gets that calls a tool under an id.
func (c *mcpClient) called(id, arguments string) string {
	c.t.Helper()
	return c.ask("tools/call", fmt.Sprintf(`{"name":"echo","arguments":%s,"_meta":{"claudecode/toolUseId":%q}}`, arguments, id))
}

// TestAHookAndAProxyShareACall: what a client's hook was asked, its proxy is not
// asked again, as long as it is that very call.
func TestAHookAndAProxyShareACall(t *testing.T) {
	t.Parallel()
	s, daemon, _ := newSharing(t)
	c := s.proxy() // it does not know the agent, and takes the hook's

	if out := s.hook("PreToolUse", "toolu_1", `"tool_input":{"m":"hello"}`); !strings.Contains(out, `{"m":"run 1"}`) {
		t.Fatalf("the hook answers %s", out)
	}
	r := c.called("toolu_1", `{"m":"run 1"}`) // as the hook had it rewritten
	if !strings.Contains(r, `"text":"run 1"`) || strings.Count(r, "mind the gap") != 1 {
		t.Errorf("%s", r)
	}
	if out := s.hook("PostToolUse", "toolu_1", `"tool_input":{"m":"run 1"},"tool_response":[{"type":"text","text":"run 1"}]`); strings.Contains(out, "mind the gap") {
		t.Errorf("it is told twice: %s", out)
	}
	s.asked(1, 1)
	if after, err := os.ReadFile(filepath.Join(s.dir, "after.json")); err != nil || !strings.Contains(string(after), `"agent_id":"claude-s1"`) || !strings.Contains(string(after), `{"m":"run 1"}`) {
		t.Errorf("after the call hooks see %s, %v", after, err)
	}

	// The proxy is called otherwise than the hook was asked: that is judged.
	s.hook("PreToolUse", "toolu_2", `"tool_input":{"m":"harmless"}`)
	if r := c.called("toolu_2", `{"m":"harmful"}`); !strings.Contains(r, `"text":"run 3"`) {
		t.Errorf("%s", r)
	}
	s.asked(3, 2)

	// Without the daemon each asks for itself.
	daemon.kill()
	s.hook("PreToolUse", "toolu_3", `"tool_input":{"m":"hello"}`)
	if r := c.called("toolu_3", `{"m":"run 4"}`); !strings.Contains(r, `"text":"run 5"`) || strings.Count(r, "mind the gap") != 1 {
		t.Errorf("%s", r)
	}
	s.asked(5, 3)
}

// TestAProxyBeforeAFrozenDaemonAsksTheFabric within the time that it has.
func TestAProxyBeforeAFrozenDaemonAsksTheFabric(t *testing.T) {
	t.Parallel()
	s, daemon, b := newSharing(t)
	c := s.proxy("--agent", "coder", "--timeout", "5s")
	daemon.freeze(t)
	if r := c.called("toolu_1", `{"m":"hello"}`); !strings.Contains(r, `"text":"run 1"`) {
		t.Errorf("%s", r)
	}
	b.freeze(t) // no broker answers, and the hook is fail-closed
	if r := c.called("toolu_2", `{"m":"hello"}`); !strings.Contains(r, `"isError":true`) || strings.Contains(r, `"text":"run`) {
		t.Errorf("with the fabric frozen: %s", r)
	}
}

// TestAManagedProxyThatNeverReachedAFabricDenies checks that a managed proxy denies calls by
// default if it never reached a fabric.
func TestAManagedProxyThatNeverReachedAFabricDenies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		runs  bool
	}{{nil, true}, {[]string{"--managed"}, false}, {[]string{"--managed", "--unreachable", "allow"}, true}, {[]string{"--unreachable", "deny"}, false}} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			t.Parallel()
			proxy := mcpOver(t, nil, append(through("nats://127.0.0.1:1", append(c.flags, "--timeout", "2s", "--state", t.TempDir())...), "--", "mcpserver")...)
			r := proxy.call("echo", `{"m":"hello"}`)
			if runs := strings.Contains(r, `"text":"hello"`); runs != c.runs || !runs && !strings.Contains(r, `"isError":true`) {
				t.Errorf("%s", r)
			}
			if err := eventually("it is said", func() bool { return strings.Contains(proxy.said.String(), "without a verdict") }); err != nil {
				t.Error(err)
			}
		})
	}
}

package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	canaryTime = 15 * time.Second // limits one test call
	maxSaid    = 300              // limits how much of a program's output the doctor repeats
)

// A Canary is a test call through an installed hook, as the runtime would make it.
type Canary struct {
	Event string `json:"event"`
	// Exit is the hook's exit code, or the HTTP status.
	Exit int             `json:"exit"`
	Took schema.Duration `json:"took"`
	// Judged: the fabric judged the call.
	Judged bool `json:"judged"`
	// Said is the hook's message for people.
	Said string `json:"said,omitzero"`

	alone bool // the shim decided without the fabric
}

// before returns the name of the moment before a tool call, and a payload for it.
func before(runtime, session, dir string) (event string, payload map[string]any) {
	input := map[string]any{"doctor": true}
	switch runtime {
	case "gemini":
		return "BeforeTool", map[string]any{"session_id": session, "cwd": dir, "hook_event_name": "BeforeTool",
			"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "tool_name": Tool, "tool_input": input}
	case "cursor":
		return "preToolUse", map[string]any{"conversation_id": session, "session_id": session, "generation_id": session, "hook_event_name": "preToolUse",
			"cwd": dir, "workspace_roots": []string{dir}, "tool_name": Tool, "tool_input": input, "tool_use_id": session}
	case "copilot":
		return "preToolUse", map[string]any{"sessionId": session, "timestamp": time.Now().UnixMilli(), "cwd": dir, "toolName": Tool, "toolArgs": input}
	case "agy":
		return "PreToolUse", map[string]any{"toolCall": map[string]any{"name": Tool, "args": input}, "conversationId": session,
			"stepIdx": 1, "workspacePaths": []string{dir}}
	case "opencode":
		return "tool.execute.before", map[string]any{"hook": "tool.execute.before", "sessionID": session, "directory": dir, "tool": Tool,
			"callID": session, "args": input}
	}
	return "PreToolUse", map[string]any{"session_id": session, "cwd": dir, "hook_event_name": "PreToolUse", "tool_name": Tool,
		"tool_input": input, "tool_use_id": session}
}

// try makes a test call through the hook that is installed before tool calls.
func (t *Runtime) try(ctx context.Context, o *Options, f *fabric) {
	if o.Machine.Root != "" {
		t.hint("doctor sent no test call, because it runs no programs below --root")
		return
	}
	if install.Foreign(o.State) {
		t.notTried("doctor sent no test call, because the state folder belongs to another user and files of root would block it; run doctor as that user")
		return
	}
	session := Agent + "-" + rand.Text()
	event, payload := before(t.Runtime, session, o.Machine.Dir)
	for _, l := range t.ours() {
		for _, h := range l.found.Hooks {
			if h.Event != event {
				continue
			}
			if err := o.safe(&l, &h); err != nil {
				t.notTried(fmt.Sprintf("%s: doctor sent no test call: %v", l.Path, err))
				return
			}
			if creds := cmp.Or(h.Flag("--creds"), o.Creds); !bus.MayAsk(creds, Agent) {
				t.named(&l, &h, creds)
				return
			}
			body, err := schema.Marshal(payload)
			if err != nil {
				t.problem(err.Error())
				return
			}
			t.judge(ctx, o, f, trial{hook: h, body: body, session: session, shell: shell(t.Runtime)})
			return
		}
	}
	t.problem(fmt.Sprintf("no hook asks the fabric before tool calls, at %s; run 'agentshim install %s' to update the hooks", event, t.Runtime))
}

// named checks a hook whose credentials do not allow the doctor's test call.
func (t *Runtime) named(l *Layer, h *install.Owned, creds string) {
	agent := cmp.Or(h.Flag("--agent"), os.Getenv("HOOKFABRIC_AGENT"))
	switch {
	case agent == "":
		t.problem(fmt.Sprintf("%s: the hooks name no agent, and the credentials in %s are only for certain agents, so the fabric judges no call; install again with --agent", l.Path, creds))
	case !bus.MayAsk(creds, agent):
		t.problem(fmt.Sprintf("%s: the credentials in %s are not for the agent %q, so the fabric judges no call; name the agent's own credentials with --creds", l.Path, creds, agent))
	default:
		t.hint(fmt.Sprintf("doctor sent no test call, because the credentials in %s are only for certain agents, and the call would take the items that wait for such an agent", creds))
	}
}

type trial struct {
	hook    install.Owned
	body    []byte
	session string
	shell   string
}

func (t *Runtime) judge(ctx context.Context, o *Options, f *fabric, x trial) {
	c := &Canary{Event: x.hook.Event}
	t.Canary = c
	ctx, cancel := context.WithTimeout(ctx, canaryTime)
	defer cancel()
	var err error
	if x.hook.URL != "" {
		err = c.post(ctx, o, &x)
	} else {
		err = c.start(ctx, o, &x)
	}
	switch {
	case err != nil:
		t.problem(fmt.Sprintf("the test call through the hook at %s failed: %v", c.Event, err))
		return
	case x.hook.URL == "" && c.Exit != 0, x.hook.URL != "" && c.Exit != http.StatusOK:
		t.problem(fmt.Sprintf("the test call through the hook at %s ended with %d: %s", c.Event, c.Exit, c.Said))
		return
	}
	switch {
	case f.nc == nil: // the report has this already, and it is the cause
		return
	case f.feed == nil && x.hook.URL != "":
		t.hint(fmt.Sprintf("the hook at %s answered a test call; doctor cannot see whether the fabric judged it: %s", c.Event, f.hidden))
		return
	case f.feed == nil:
		c.Judged = !c.alone
	default:
		c.Judged = f.judged(ctx, x.session)
	}
	if c.Judged {
		return
	}
	if nats := x.hook.Flag("--nats"); nats != "" && nats != o.NATS {
		t.problem(fmt.Sprintf("the hook at %s asks another fabric, at %s; check that fabric with --nats, or install again",
			c.Event, bus.RedactURL(nats)))
	} else {
		t.problem(fmt.Sprintf("the hook at %s answered a test call, but %s", c.Event, unjudged(o, f, c.Said)))
	}
}

// unjudged returns why the doctor counts a call as one that the fabric did not judge.
func unjudged(o *Options, f *fabric, said string) string {
	silent := said == "" || said == nothing
	switch {
	case f.feed == nil && silent:
		return fmt.Sprintf("doctor cannot see whether the fabric judged it, because it cannot reach the fabric at %s", bus.RedactURL(o.NATS))
	case silent:
		return fmt.Sprintf("the fabric at %s has no record of it; the hook, or its daemon, asks another fabric; compare their --nats with this URL", bus.RedactURL(o.NATS))
	}
	return "the fabric did not judge it: " + said
}

// start runs the command as the runtime does, for the doctor's own agent.
func (c *Canary) start(ctx context.Context, o *Options, x *trial) error {
	cmd := probe.Command{Path: x.hook.Command[0], Args: append(x.hook.Command[1:len(x.hook.Command):len(x.hook.Command)], "--agent", Agent),
		Dir: o.Machine.Dir, Stdin: x.body, Timeout: canaryTime}
	if x.hook.Line != "" {
		cmd.Path, cmd.Args = x.shell, []string{"-c", x.hook.LineWith("--agent", Agent)}
	}
	r, err := probe.Run(ctx, cmd)
	c.Exit, c.Took, c.Said = r.Exit, took(r.Took), said(r.Stderr)
	c.alone = bytes.Contains(r.Stderr, []byte(aloneMark))
	return err
}

// aloneMark is a part of the shim's message about a call that the fabric did not judge.
const aloneMark = "without a verdict"

// shell returns the shell to which a runtime passes command lines.
func shell(runtime string) string {
	if runtime == "gemini" || runtime == "qwen" {
		return "bash"
	}
	return "/bin/sh"
}

func (c *Canary) post(ctx context.Context, o *Options, x *trial) error {
	token := os.Getenv(install.TokenVariable)
	if token == "" {
		data, _ := os.ReadFile(filepath.Join(o.State, "daemon.token")) // without the token, the daemon's answer says so
		token = strings.TrimSpace(string(data))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.hook.URL, bytes.NewReader(x.body))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	q.Set("agent", Agent)
	r.URL.RawQuery = q.Encode()
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // only the daemon may get the token
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: stay}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	c.Exit, c.Took = answer.StatusCode, took(time.Since(began))
	if c.Exit != http.StatusOK {
		c.Said = said(body)
	}
	return err
}

const nothing = "no output"

// said returns the beginning of a program's output, on one line.
func said(text []byte) string {
	s := strings.Join(strings.Fields(string(text)), " ")
	if s == "" {
		return nothing
	}
	return strings.ToValidUTF8(s[:min(len(s), maxSaid)], "")
}

// safe returns an error if a stranger may have written the hook: a user who runs the doctor in a downloaded
// folder has agreed to nothing in it.
func (o *Options) safe(l *Layer, h *install.Owned) error {
	theirs := l.Scope == install.Project
	if h.URL != "" {
		return o.safeURL(h.URL, theirs)
	}
	if !theirs {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if !sameProgram(h.Command[0], self) {
		return fmt.Errorf("the project's hook starts %s, which is not this agentshim; if you trust that program, run its own doctor", h.Command[0])
	}
	mine := map[string]string{"--nats": o.NATS, "--creds": o.Creds, "--state": o.State,
		"--tls-ca": o.TLS.CA, "--tls-cert": o.TLS.Cert, "--tls-key": o.TLS.Key}
	var flags []string
	for i, word := range h.Command {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(h.Command) {
			value = h.Command[i+1]
		}
		if known, is := mine[name]; is && value != known {
			flags = append(flags, name+" "+install.Quote(bus.RedactURL(value)))
		}
	}
	if len(flags) > 0 {
		return fmt.Errorf("the project's hook has flags of its own; if you trust the project, run 'agentshim doctor' with these flags: %s", strings.Join(flags, " "))
	}
	return nil
}

// safeURL returns an error if a hook's URL is not the daemon's, which alone may get the token.
func (o *Options) safeURL(text string, theirs bool) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the hook's URL is invalid; install again")
	}
	if u.Scheme != "http" || !peer.IsLocal(u.Hostname()) {
		return fmt.Errorf("the hook asks %s, which is not on this machine and would get the daemon's token; install again", bus.RedactURL(text))
	}
	card, err := daemon.Place{State: o.State}.ReadCard()
	if at, perr := url.Parse(card.URL); theirs && (err != nil || perr != nil || at.Host != u.Host) {
		return fmt.Errorf("the project's hook asks %s, which is not the daemon of this machine and would get the daemon's token; install again", u.Host)
	}
	return nil
}

// sameProgram reports whether a program, looked up as a shell does, is the given file.
func sameProgram(program, file string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	a, err := os.Stat(path)
	b, berr := os.Stat(file)
	return err == nil && berr == nil && os.SameFile(a, b)
}

package mcp_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/schema"
)

// A fabric returns the verdicts of a test, and records the questions and the deliveries.
type fabric struct {
	verdict func(ctx context.Context, q decide.Question) *schema.Verdict

	mu        sync.Mutex // guards the fields below
	asked     []schema.Event
	delivered []*schema.Verdict
}

func (f *fabric) Ask(ctx context.Context, q decide.Question) decide.Judgement {
	f.mu.Lock()
	f.asked = append(f.asked, *q.Event)
	f.mu.Unlock()
	v := &schema.Verdict{Decision: schema.Continue}
	if f.verdict != nil {
		if given := f.verdict(ctx, q); given != nil {
			v = given
		}
	}
	return decide.Judgement{Verdict: v}
}

func (f *fabric) Handed(_ context.Context, v *schema.Verdict, _ time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivered = append(f.delivered, v)
}

// questions returns the events of all questions.
func (f *fabric) questions() []schema.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]schema.Event(nil), f.asked...)
}

func (f *fabric) deliveries() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.delivered)
}

// verdictOn gives a verdict on the events of one type, and allows others.
func verdictOn(t schema.EventType, v *schema.Verdict) func(context.Context, decide.Question) *schema.Verdict {
	return func(_ context.Context, q decide.Question) *schema.Verdict {
		if q.Event.HookType != t {
			return nil
		}
		given := *v
		return &given
	}
}

// A peer is a client or a server that exchanges lines with the proxy.
type peer struct {
	t *testing.T
	w io.WriteCloser
	r *bufio.Reader
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.w, text+"\n"); err != nil {
		p.t.Errorf("writing %.200s: %v", text, err)
	}
}

// next returns the next line; empty at the end.
func (p *peer) next() string {
	p.t.Helper()
	text, err := p.r.ReadString('\n')
	if err != nil && text == "" {
		return ""
	}
	return strings.TrimSuffix(text, "\n")
}

// want checks the next line.
func (p *peer) want(text string) {
	p.t.Helper()
	if got := p.next(); got != text {
		p.t.Errorf("got  %.2000s\nwant %.2000s", got, text)
	}
}

// A rig is a Pipe whose client and server are the test.
type rig struct {
	*fabric
	client, server *peer
	stderr         *stderr
	done           chan error
}

// A stderr records the messages for the operator.
type stderr struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newRig starts a Pipe, which ends with the test at the latest.
func newRig(t *testing.T, f *fabric, change ...func(*mcp.Pipe)) *rig {
	t.Helper()
	fromClient, toProxy := io.Pipe()
	fromProxy, toClient := io.Pipe()
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	r := &rig{fabric: f, stderr: &stderr{}, done: make(chan error, 1)}
	r.client = &peer{t, toProxy, bufio.NewReader(fromProxy)}
	r.server = &peer{t, serverOut, bufio.NewReader(serverIn)}
	p := mcp.Pipe{
		Guard:      &mcp.Guard{Asker: f, Agent: "a", Server: "srv", Cwd: "/work", Stderr: r.stderr},
		FromClient: fromClient, ToClient: toClient, FromServer: fromServer, ToServer: toServer,
	}
	for _, c := range change {
		c(&p)
	}
	go func() {
		err := p.Run(t.Context())
		_ = toClient.Close()
		r.done <- err
	}()
	t.Cleanup(func() { _, _ = toProxy.Close(), serverOut.Close() })
	return r
}

// call returns a call of the tool echo.
func call(id, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":{"m":"x"}` + more + `}}`
}

// result returns the server's answer to call.
func result(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"x"}]}}`
}

const (
	initialize       = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"claude-code","version":"2"}}}`
	initializeMute   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"gemini-cli-mcp-client","version":"2"}}}`
	initializeResult = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"the server","version":"1"}}}`
)

// handshake opens the connection as protocols before 2026-07-28 do.
func (r *rig) handshake(with string) {
	r.client.send(with)
	r.server.want(with)
	r.server.send(initializeResult)
	r.client.want(initializeResult)
}

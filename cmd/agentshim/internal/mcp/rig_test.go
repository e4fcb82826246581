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

// A fabric judges as a test says, and remembers what it was asked and told.
type fabric struct {
	judge func(ctx context.Context, q decide.Question) *schema.Verdict

	mu     sync.Mutex // guards what follows
	asked  []schema.Event
	handed []*schema.Verdict
}

func (f *fabric) Ask(ctx context.Context, q decide.Question) decide.Judgement {
	f.mu.Lock()
	f.asked = append(f.asked, *q.Event)
	f.mu.Unlock()
	v := &schema.Verdict{Decision: schema.Continue}
	if f.judge != nil {
		if said := f.judge(ctx, q); said != nil {
			v = said
		}
	}
	return decide.Judgement{Verdict: v}
}

func (f *fabric) Handed(_ context.Context, v *schema.Verdict, _ time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed = append(f.handed, v)
}

// questions are the events that were asked about.
func (f *fabric) questions() []schema.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]schema.Event(nil), f.asked...)
}

func (f *fabric) told() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.handed)
}

// on judges the events of one type, and has no opinion about others.
func on(t schema.EventType, v *schema.Verdict) func(context.Context, decide.Question) *schema.Verdict {
	return func(_ context.Context, q decide.Question) *schema.Verdict {
		if q.Event.HookType != t {
			return nil
		}
		said := *v
		return &said
	}
}

// A line is a stream of lines between a test and the proxy.
type line struct {
	t *testing.T
	w io.WriteCloser
	r *bufio.Reader
}

func (l *line) send(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.w, text+"\n"); err != nil {
		l.t.Errorf("writing %.200s: %v", text, err)
	}
}

// next is the next line that comes; empty at the end.
func (l *line) next() string {
	l.t.Helper()
	text, err := l.r.ReadString('\n')
	if err != nil && text == "" {
		return ""
	}
	return strings.TrimSuffix(text, "\n")
}

// want reads a line that must be exactly that.
func (l *line) want(text string) {
	l.t.Helper()
	if got := l.next(); got != text {
		l.t.Errorf("got  %.2000s\nwant %.2000s", got, text)
	}
}

// A rig is a proxy between two ends that a test has in its hands.
type rig struct {
	*fabric
	client, server *line
	stderr         *said
	done           chan error
}

// said is what was written for people.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newRig starts a proxy, which ends with the test at the latest.
func newRig(t *testing.T, f *fabric, change ...func(*mcp.Pipe)) *rig {
	t.Helper()
	fromClient, toProxy := io.Pipe()
	fromProxy, toClient := io.Pipe()
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	r := &rig{fabric: f, stderr: &said{}, done: make(chan error, 1)}
	r.client = &line{t, toProxy, bufio.NewReader(fromProxy)}
	r.server = &line{t, serverOut, bufio.NewReader(serverIn)}
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

// call is a tools/call of the tool echo.
func call(id, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":{"m":"x"}` + more + `}}`
}

// result is the server's answer to it.
func result(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"x"}]}}`
}

const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"claude-code","version":"2"}}}`
	mute  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"gemini-cli-mcp-client","version":"2"}}}`
	hi    = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"the server","version":"1"}}}`
)

// greet opens the connection as a client of an era with a handshake.
func (r *rig) greet(with string) {
	r.client.send(with)
	r.server.want(with)
	r.server.send(hi)
	r.client.want(hi)
}

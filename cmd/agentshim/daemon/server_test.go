package daemon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/schema"
)

// post is a test daemon at a socket.
type post struct {
	*Server
	*bench

	socket string
	stop   func()
}

func serving(t *testing.T, b *bench) *post {
	t.Helper()
	p := &post{bench: b, socket: filepath.Join(t.TempDir(), "s")}
	p.Server = New(Options{Judge: b, NATS: "nats://here", Token: "secret", Log: slog.New(slog.DiscardHandler)})
	l, free, err := Listen(p.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, l) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		free()
	})
	t.Cleanup(p.stop)
	return p
}

const soon = 20 * time.Second

// hook runs one hook at the daemon.
func (p *post) hook(payload string) (*Reply, error) {
	return Hook(p.socket, &Request{Runtime: "generic", EventID: "01890000-0000-7000-8000-000000000001", Payload: []byte(payload)}, time.Now().Add(soon))
}

const denied = `{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"ls"}}`

func (p *post) handedOver() []string {
	p.bench.mu.Lock()
	defer p.bench.mu.Unlock()
	return slices.Clone(p.handed)
}

func TestAHookIsAnsweredAndSaysThatItWrote(t *testing.T) {
	p := serving(t, &bench{})
	r, err := p.hook(denied)
	if err != nil {
		t.Fatal(err)
	}
	if v := new(schema.Verdict); schema.Unmarshal(r.Stdout, v) != nil || v.Decision != schema.Deny || len(v.Injections) != 1 || r.Exit != 0 {
		t.Errorf("%s, exit code %d", r.Stdout, r.Exit)
	}
	if n := len(p.handedOver()); n != 0 {
		t.Errorf("%d answers count as handed over before they are written", n)
	}
	r.Written()
	bustest.Eventually(t, "the answer is handed over", func() bool { return len(p.handedOver()) == 1 })
	if id := p.first().EventID; id != "01890000-0000-7000-8000-000000000001" {
		t.Errorf("the event's id is %s", id)
	}
	if r, err := p.hook("junk"); err != nil || r.Exit != 1 || !strings.Contains(r.Log, "reading the event on stdin") {
		t.Errorf("what cannot be read: %+v, %v", r, err)
	}
}

func TestAHookThatDiesLeavesWhatItWasGivenToTheNext(t *testing.T) {
	p := serving(t, &bench{})
	r, err := p.hook(denied)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	bustest.Eventually(t, "another one is told", func() bool {
		r, err := p.hook(denied)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return bytes.Contains(r.Stdout, []byte("careful"))
	})
	if len(p.handedOver()) != 0 || p.count() != 1 {
		t.Errorf("%v are handed over, and %d were asked about", p.handedOver(), p.count())
	}
}

func TestTwoHundredHooksAtOnce(t *testing.T) {
	p := serving(t, &bench{says: func(_ context.Context, q decide.Question) decide.Judgement {
		return decide.Judgement{Verdict: &schema.Verdict{Decision: schema.Deny, Reason: q.Event.ToolUseID}}
	}})
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			want := fmt.Sprintf("call-%d.", i)
			r, err := p.hook(strings.ReplaceAll(denied, "t1", want))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Written()
			if !bytes.Contains(r.Stdout, []byte(want)) {
				t.Errorf("call %d is told %s", i, r.Stdout)
			}
		})
	}
	wait.Wait()
	bustest.Eventually(t, "all calls have ended", func() bool { return p.Status().Active == 0 })
	if st := p.Status(); st.Calls != 200 || st.Shared != 0 {
		t.Errorf("%+v", st)
	}
}

// raw sends bytes to the daemon that no hook sends, and returns the answer.
func (p *post) raw(t *testing.T, wire []byte) []byte {
	t.Helper()
	c, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(soon))
	if _, err := c.Write(wire); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // the daemon may reset the connection because it did not read all of it
		return said
	}
	if err != nil {
		t.Fatalf("it keeps on listening: %v", err)
	}
	return said
}

func TestJunkIsNobodysBusinessButItsOwn(t *testing.T) {
	p := serving(t, &bench{})
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	for name, wire := range map[string][]byte{
		"nothing": nil, "a web page": []byte("GET / HTTP/1.1\r\n\r\n"), "half a length": {0, 0}, "too long": huge,
		"half a frame":        frame.Append(nil, &frame.Message{Kind: frame.Hook, Body: []byte(denied)})[:20],
		"an unknown kind":     frame.Append(nil, &frame.Message{Kind: 'x'}),
		"no runtime":          frame.Append(nil, &frame.Message{Kind: frame.Hook}),
		"no time":             frame.Append(nil, &frame.Message{Kind: frame.Hook, Words: map[string]string{wordRuntime: "generic"}}),
		"an event of nobody":  frame.Append(nil, &frame.Message{Kind: frame.Ask, Body: []byte(`{}`)}),
		"an answer":           frame.Append(nil, &frame.Message{Kind: frame.Answer, Body: []byte(`{"decision":"allow"}`)}),
		"written before time": frame.Append(nil, &frame.Message{Kind: frame.Written}),
	} {
		t.Run(name, func(t *testing.T) {
			said := p.raw(t, wire)
			if m, err := frame.Read(bytes.NewReader(said), frame.MaxAnswer); err == nil && m.Kind != frame.Elsewhere {
				t.Errorf("it answers %+v", m)
			}
		})
	}
	if p.count() != 0 {
		t.Errorf("%d of them were judged", p.count())
	}
	if r, err := p.hook(denied); err != nil {
		t.Error(err)
	} else {
		r.Written()
	}
}

func TestAnotherFabricIsNotJudgedFor(t *testing.T) {
	p := serving(t, &bench{})
	for name, c := range map[string]struct {
		nats, creds string
		want        error
	}{
		"no fabric in particular": {},
		"this one":                {nats: "nats://here"},
		"another one":             {nats: "nats://there", want: ErrElsewhere},
		"other credentials":       {nats: "nats://here", creds: "/creds", want: ErrElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Hook(p.socket, &Request{Runtime: "generic", NATS: c.nats, Creds: c.creds, Payload: []byte(denied)}, time.Now().Add(soon))
			if !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
			if err == nil {
				r.Written()
			}
		})
	}
}

// A daemon that hangs, or ends during a call, does not answer: the hook asks the fabric
// itself.
func TestADaemonThatDoesNotAnswerIsNoAnswer(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){
		"it ends":           func(c net.Conn) { _ = c.Close() },
		"it hangs":          func(net.Conn) {},
		"it beats and ends": func(c net.Conn) { _ = frame.Write(c, &frame.Message{Kind: frame.Beat}); _ = c.Close() },
		"half an answer": func(c net.Conn) {
			_, _ = c.Write(frame.Append(nil, &frame.Message{Kind: frame.Answer, Words: words(wordExit, "0"), Body: []byte("{}")})[:12])
			_ = c.Close()
		},
		"junk":           func(c net.Conn) { _, _ = c.Write([]byte("\x00\x00\x00\x03w\x00{")) },
		"no exit code":   func(c net.Conn) { _ = frame.Write(c, &frame.Message{Kind: frame.Answer}) },
		"too much of it": func(c net.Conn) { _, _ = c.Write([]byte("\xff\xff\xff\xff")) },
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err == nil {
					_, _ = frame.Read(c, frame.MaxRequest)
					answer(c)
				}
			}()
			began := time.Now()
			r, err := Hook(socket, &Request{Runtime: "generic", Payload: []byte(denied)}, began.Add(3*time.Second))
			if !errors.Is(err, ErrLost) {
				t.Errorf("%+v, %v", r, err)
			}
			if left := time.Until(began.Add(3 * time.Second)); left < time.Second {
				t.Errorf("only %v are left to ask the fabric", left)
			}
		})
	}
}

func TestWhereNobodyListensIsNoDaemon(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{filepath.Join(dir, "none"), stale, filepath.Join(dir, strings.Repeat("x", 200))} {
		if _, err := Hook(socket, &Request{Runtime: "generic"}, time.Now().Add(soon)); !errors.Is(err, ErrAbsent) {
			t.Errorf("%v", err)
		}
	}
	taken, free, err := Listen(stale)
	if err != nil {
		t.Fatalf("what a dead daemon left is in the way: %v", err)
	}
	defer free()
	defer taken.Close()
	if _, _, err := Listen(stale); !errors.Is(err, ErrTaken) {
		t.Errorf("two daemons serve at one place: %v", err)
	}
	if info, err := os.Stat(stale); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAFolderThatOthersCanWriteToIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Listen(filepath.Join(dir, "s")); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("%v", err)
	}
}

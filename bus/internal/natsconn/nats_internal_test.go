package natsconn

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// triedVersions are the versions of nats.go that the tests of this file passed with, and whose
// source a developer compared with the list in doc.go.
var triedVersions = []string{"v1.55.0"}

func TestTheVersionOfNATSWasTried(t *testing.T) {
	data, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "github.com/nats-io/nats.go" {
			if !slices.Contains(triedVersions, words[1]) {
				t.Errorf("go.mod requires nats.go %s, with which natsconn was not tried; compare its source with the list in doc.go, run the tests of this package, and add it to triedVersions", words[1])
			}
			return
		}
	}
	t.Error("go.mod does not name nats.go")
}

// A recorder is a connection that records the client's calls.
type recorder struct {
	net.Conn
	mu        sync.Mutex // guards the following fields
	deadlines []string
	reads     int
	writes    [][]byte
}

func (r *recorder) deadline(kind string, t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.IsZero() {
		kind = "no " + kind
	}
	if r.reads == 0 {
		kind += " before reading"
	}
	r.deadlines = append(r.deadlines, kind)
}

func (r *recorder) SetDeadline(t time.Time) error      { r.deadline("deadline", t); return nil }
func (r *recorder) SetReadDeadline(t time.Time) error  { r.deadline("read deadline", t); return nil }
func (r *recorder) SetWriteDeadline(t time.Time) error { r.deadline("write deadline", t); return nil }

func (r *recorder) Read(p []byte) (int, error) {
	r.mu.Lock()
	r.reads++
	r.mu.Unlock()
	return r.Conn.Read(p)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	r.writes = append(r.writes, bytes.Clone(p))
	r.mu.Unlock()
	return r.Conn.Write(p)
}

// written returns all bytes that the client wrote.
func (r *recorder) written() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(slices.Concat(r.writes...))
}

// A fakeServer greets clients, answers pings and ignores everything else.
type fakeServer struct {
	mu      sync.Mutex // guards the following fields
	clients []*recorder
	// former is what a client had written when it made its second connection.
	former string
}

func (s *fakeServer) InProcessConn() (net.Conn, error) {
	here, there := net.Pipe()
	r := &recorder{Conn: here}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) > 0 {
		s.former = s.clients[len(s.clients)-1].written()
	}
	s.clients = append(s.clients, r)
	go func() {
		defer there.Close()
		fmt.Fprint(there, "INFO {\"headers\":true,\"max_payload\":1048576}\r\n")
		in := bufio.NewReader(there)
		// A pipe has no buffer: a client that writes does not read, so this side must read while its answer waits.
		pongs := make(chan struct{}, 64)
		defer close(pongs)
		go func() {
			for range pongs {
				fmt.Fprint(there, "PONG\r\n")
			}
		}()
		for {
			line, err := in.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
			if bytes.HasPrefix(line, []byte("PING")) {
				pongs <- struct{}{}
			}
		}
	}()
	return r, nil
}

// client returns the n-th connection, from 0.
func (s *fakeServer) client(n int) *recorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[n]
}

// connect returns a client of s with the options of bus.Connect that matter here.
func (s *fakeServer) connect(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.FlusherTimeout(0), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// awaitWritten waits until the client has written all that it buffered.
func awaitWritten(t *testing.T, nc *nats.Conn) {
	t.Helper()
	for {
		n, err := nc.Buffered()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 && nc.Status() == nats.CONNECTED {
			return
		}
		runtime.Gosched()
	}
}

// Reliance 1.
func TestTheClientKeepsItsDialer(t *testing.T) {
	c := New(Config{Timeout: time.Second, InProcess: new(fakeServer)})
	nc, err := nats.Connect("", c.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if connectorOf(nc) != c {
		t.Errorf("the client has the dialer %v", nc.Opts.CustomDialer)
	}
}

// Reliances 2 and 5 during a reconnect.
func TestTheClientLeavesItsConnectionBeforeItMakesAnother(t *testing.T) {
	var s fakeServer
	nc := s.connect(t)
	for _, subject := range []string{"a", "b", "c"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
	}
	back := nc.StatusChanged(nats.CONNECTED)
	if err := nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	<-back
	awaitWritten(t, nc)
	for _, subject := range []string{"a", "b", "c"} {
		if !strings.Contains(s.client(1).written(), "SUB "+subject+" ") {
			t.Errorf("the client is connected and has not subscribed to %s", subject)
		}
	}
	if err := nc.Publish("a", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	if after := s.client(0).written(); after != s.former {
		t.Errorf("the client wrote to its former connection after it made another: %q", after[len(s.former):])
	}
}

// Reliance 3.
func TestTheClientSetsDeadlinesForTheHandshakeOnly(t *testing.T) {
	var s fakeServer
	nc := s.connect(t)
	if err := nc.Publish("a", []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	r := s.client(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if want := []string{"deadline before reading", "no deadline"}; !slices.Equal(r.deadlines, want) {
		t.Errorf("the client set %q; want %q", r.deadlines, want)
	}
}

// Reliance 4.
func TestTheClientWritesWholeOperations(t *testing.T) {
	var s fakeServer
	nc := s.connect(t)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 100 {
				m := nats.NewMsg(fmt.Sprintf("s.%d", w))
				m.Data = bytes.Repeat([]byte("\r\nPUB x 1\r\n"), i*50)
				if i%2 == 0 {
					m.Header.Set("A", strings.Repeat("b", i))
				}
				sub, err := nc.SubscribeSync(m.Subject)
				err = errors.Join(err, nc.PublishMsg(m), sub.Unsubscribe())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Fatal(err)
	}
	r := s.client(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.writes {
		if rest := afterOperations(p); len(rest) > 0 {
			t.Fatalf("a write ends with a part of an operation: %.100q", rest)
		}
	}
}

// afterOperations returns the rest of p after its whole operations.
func afterOperations(p []byte) []byte {
	for len(p) > 0 {
		line, rest, ok := bytes.Cut(p, []byte("\r\n"))
		if !ok {
			return p
		}
		if words := strings.Fields(string(line)); words[0] == "PUB" || words[0] == "HPUB" {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil || len(rest) < size+2 || string(rest[size:size+2]) != "\r\n" {
				return p
			}
			rest = rest[size+2:]
		}
		p = rest
	}
	return nil
}

// Reliance 5.
func TestABufferOfZeroBytesMeansThatAllIsWritten(t *testing.T) {
	var s fakeServer
	nc := s.connect(t)
	for i := range 200 {
		subject := fmt.Sprintf("number.%d.", i)
		if err := nc.Publish(subject+"end", nil); err != nil {
			t.Fatal(err)
		}
		awaitWritten(t, nc)
		if !strings.Contains(s.client(0).written(), subject) {
			t.Fatalf("Buffered is 0, and the client has not written message %d", i)
		}
	}
}

package natsconn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts the writes that reach it.
type counted struct {
	net.Conn
	writes atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// wrap returns a connection of which callers write the first messages directly.
func wrap(c net.Conn, writeTime time.Duration) *conn {
	return newConn(c, writeTime, &handshakeLimit{least: time.Second})
}

// combining returns a connection that combines messages from the start.
func combining(c net.Conn, writeTime time.Duration) *conn {
	wrapped := wrap(c, writeTime)
	wrapped.direct = 0
	return wrapped
}

func TestCombinedWritesArriveWhole(t *testing.T) {
	for name, direct := range map[string]int{"from the start": 0, "after writes by the callers": maxDirect} {
		t.Run(name, func(t *testing.T) { arrivesWhole(t, direct) })
	}
}

func arrivesWhole(t *testing.T, direct int) {
	const writers, lines = 16, 200
	here, there := net.Pipe()
	under := &counted{Conn: here}
	g := wrap(under, time.Minute)
	g.direct = direct
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(there)
		got <- all
	}()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				if _, err := fmt.Fprintf(g, "%d %d\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := g.Close(); err != nil { // writes the rest
		t.Fatal(err)
	}
	next := map[int]int{}
	for line := range bytes.Lines(<-got) {
		var w, i int
		if _, err := fmt.Sscanf(string(line), "%d %d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("the line %q came in place of line %d of %d: %v", line, next[w], w, err)
		}
		next[w]++
	}
	for w := range writers {
		if next[w] != lines {
			t.Errorf("%d lines of %d arrived", next[w], w)
		}
	}
	if n := under.writes.Load(); n >= writers*lines/2 {
		t.Errorf("%d lines took %d writes", writers*lines, n)
	}
}

// TestPublishedMessagesAreWholeAndInOrder mixes published messages with those of the
// client.
func TestPublishedMessagesAreWholeAndInOrder(t *testing.T) {
	const writers, each = 8, 200
	here, there := net.Pipe()
	g := wrap(here, time.Minute)
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(there)
		got <- all
	}()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				m := &Message{Subject: "s", Data: fmt.Append(nil, w, " ", i)}
				var err error
				if i%2 == 0 {
					err = g.publish(m)
				} else {
					_, err = g.Write(m.append(nil))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	next, lines := map[int]int{}, strings.Split(string(<-got), "\r\n")
	for at := 0; at+1 < len(lines); at += 2 {
		var size, w, i int
		if _, err := fmt.Sscanf(lines[at], "PUB s %d", &size); err != nil || size != len(lines[at+1]) {
			t.Fatalf("%q is before %q", lines[at], lines[at+1])
		}
		if _, err := fmt.Sscanf(lines[at+1], "%d %d", &w, &i); err != nil || next[w] != i {
			t.Fatalf("the message %q is in place of number %d of %d: %v", lines[at+1], next[w], w, err)
		}
		next[w]++
	}
	for w := range writers {
		if next[w] != each {
			t.Errorf("%d messages of %d arrived", next[w], w)
		}
	}
}

func TestABrokenConnectionFailsWritesAndReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		g := combining(here, time.Minute)
		_ = there.Close()
		for range 2 { // the first may only be buffered
			_, _ = g.Write([]byte("x"))
			synctest.Wait()
		}
		if _, err := g.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("writing to a closed peer gave %v", err)
		}
		if _, err := g.Read(make([]byte, 1)); err == nil {
			t.Error("reading succeeds")
		}
		_ = g.Close()
	})
}

// deaf returns a connection whose peer does not read yet.
func deaf(t *testing.T, timeout time.Duration) (g *conn, peer net.Conn) {
	here, peer := net.Pipe()
	g = wrap(here, timeout)
	t.Cleanup(func() { _ = g.Close() })
	return g, peer
}

func TestWritesToAPeerThatDoesNotReadReturnSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, peer := deaf(t, time.Minute)
		much := bytes.Repeat([]byte("0123456789"), softLimit/10+1)
		var want []byte
		for n := range 10 {
			p := append(fmt.Appendf(nil, "%d ", n), much...)
			want = append(want, p...)
			if _, err := g.Write(p); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		// The first write runs out of time, and the next one finds no space.
		if took := time.Since(began); took > 2*callerTime {
			t.Errorf("the writes took %v", took)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the peer reads other data: %v", err)
		}
		synctest.Wait()
		if g.slow || len(g.pending) > 0 {
			t.Error("the connection counts as slow, but the peer has read all data")
		}
	})
}

func TestAPeerThatNeverReadsLosesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, _ := deaf(t, time.Minute)
		if _, err := g.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if _, err := g.Write([]byte("x")); err == nil {
			t.Errorf("after %v a write succeeds", time.Since(began))
		}
		g, _ = deaf(t, time.Minute)
		much, taken := make([]byte, softLimit), 0
		var err error
		for err == nil && taken <= 2*hardLimit {
			_, err = g.Write(much)
			taken += len(much)
		}
		if !errors.Is(err, errClogged) || taken > hardLimit+4*softLimit {
			t.Errorf("%d bytes were accepted: %v", taken, err)
		}
	})
}

func TestWritesWaitForASlowPeerInThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, peer := deaf(t, 0)
		g.direct = 0
		much := make([]byte, softLimit+1)
		time.AfterFunc(time.Hour, func() { _, _ = io.Copy(io.Discard, peer) })
		for range 3 { // one is being written, one waits, and one finds no space
			if _, err := g.Write(much); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if took := time.Since(began); took != time.Hour {
			t.Errorf("the writes took %v", took)
		}
	})
}

func TestClosingDoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _ := net.Pipe()
		g := combining(here, 0)
		if _, err := g.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		_ = g.Close()
		if took := time.Since(began); took != closeTime {
			t.Errorf("closing took %v", took)
		}
		if _, err := g.Write([]byte("x")); err == nil {
			t.Error("a closed connection accepts a write")
		}
		_ = g.Close() // a second time does nothing
	})
}

func TestASingleWriterIsNotDelayed(t *testing.T) {
	here, there := net.Pipe()
	g := wrap(here, time.Minute)
	defer g.Close()
	got := make(chan string)
	go func() {
		p := make([]byte, 8)
		for {
			n, err := there.Read(p)
			if err != nil {
				close(got)
				return
			}
			got <- string(p[:n])
		}
	}()
	for i := range 3 * maxDirect { // flush writes some of them, as a trial
		if _, err := fmt.Fprintf(g, "%d", i); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != fmt.Sprint(i) {
			t.Fatalf("%q came in place of %d", s, i)
		}
	}
}

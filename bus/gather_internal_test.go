package bus

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

// gathering returns a connection whose own goroutine writes from the start.
func gathering(conn net.Conn, timeout time.Duration) *gathered {
	g := gather(conn, timeout)
	g.alone = 0
	return g
}

func TestGatheredWritesArriveWhole(t *testing.T) {
	for name, alone := range map[string]int{"from the start": 0, "after writes by the callers": aloneMost} {
		t.Run(name, func(t *testing.T) { arrivesWhole(t, alone) })
	}
}

func arrivesWhole(t *testing.T, alone int) {
	const writers, lines = 16, 200
	here, there := net.Pipe()
	under := &counted{Conn: here}
	g := gathering(under, time.Minute)
	g.alone = alone
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

// TestMessagesOfAnOutletAreWholeAndInOrder mixes messages of an outlet with those of the
// client.
func TestMessagesOfAnOutletAreWholeAndInOrder(t *testing.T) {
	const writers, each = 8, 200
	here, there := net.Pipe()
	g := gather(here, time.Minute)
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(there)
		got <- all
	}()
	if err := g.publish(&Message{Subject: "s"}); !errors.Is(err, errWrapped) {
		t.Fatalf("before CONNECT a message gave %v", err)
	}
	if _, err := io.WriteString(g, connect+"{}\r\n"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				m := &Message{Subject: "s", Data: fmt.Append(nil, w, " ", i)}
				var err error
				if i%2 == 0 {
					err = g.publish(m)
				} else {
					_, err = g.Write(m.write(nil))
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
	for at := 1; at+1 < len(lines); at += 2 {
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

// Inside TLS only the client can write, because only it encrypts.
func TestAnOutletDoesNotWriteInsideTLS(t *testing.T) {
	here, there := net.Pipe()
	g := gather(here, time.Minute)
	defer g.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	for _, first := range []string{"\x16\x03\x01", connect + "{}\r\n"} {
		if _, err := io.WriteString(g, first); err != nil {
			t.Fatal(err)
		}
		if err := g.publish(&Message{Subject: "s"}); !errors.Is(err, errWrapped) {
			t.Errorf("after %q a message gave %v", first, err)
		}
	}
}

func TestABrokenConnectionFailsWritesAndReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		g := gathering(here, time.Minute)
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
func deaf(t *testing.T, timeout time.Duration) (g *gathered, peer net.Conn) {
	here, peer := net.Pipe()
	g = gather(here, timeout)
	t.Cleanup(func() { _ = g.Close() })
	return g, peer
}

func TestWritesToAPeerThatDoesNotReadReturnSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, peer := deaf(t, time.Minute)
		much := bytes.Repeat([]byte("0123456789"), gatherMost/10+1)
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
		if took := time.Since(began); took > 2*writeSoon {
			t.Errorf("the writes took %v", took)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the peer reads other data: %v", err)
		}
		synctest.Wait()
		if g.stuck || len(g.waiting) > 0 {
			t.Error("the connection counts as stuck, but the peer has read all data")
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
		much, taken := make([]byte, gatherMost), 0
		var err error
		for err == nil && taken <= 2*gatherLimit {
			_, err = g.Write(much)
			taken += len(much)
		}
		if !errors.Is(err, errClogged) || taken > gatherLimit+4*gatherMost {
			t.Errorf("%d bytes were accepted: %v", taken, err)
		}
	})
}

func TestWritesWaitForASlowPeerInThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, peer := deaf(t, 0)
		g.alone = 0
		much := make([]byte, gatherMost+1)
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
		g := gathering(here, 0)
		if _, err := g.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		_ = g.Close()
		if took := time.Since(began); took != lastTime {
			t.Errorf("closing took %v", took)
		}
		if _, err := g.Write([]byte("x")); err == nil {
			t.Error("a closed connection accepts a write")
		}
		_ = g.Close() // a second time does nothing
	})
}

// The client does not close a connection that failed.
func TestTheWriteGoroutineEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _ := net.Pipe()
		g := gathering(here, 0)
		synctest.Wait() // until the goroutine waits for data
		g.giveUp(errLeft)
		synctest.Wait()
		select {
		case <-g.ended:
		default:
			t.Error("the write goroutine still waits for data")
			_ = g.Close()
		}
	})
}

func TestASingleWriterIsNotDelayed(t *testing.T) {
	here, there := net.Pipe()
	g := gather(here, time.Minute)
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
	for i := range 3 * aloneMost { // the write goroutine writes some of them, as a trial
		if _, err := fmt.Fprintf(g, "%d", i); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != fmt.Sprint(i) {
			t.Fatalf("%q came in place of %d", s, i)
		}
	}
}

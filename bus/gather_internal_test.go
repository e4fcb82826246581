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

// gathering has somebody else write from the start.
func gathering(conn net.Conn, timeout time.Duration) *gathered {
	g := gather(conn, timeout)
	g.alone = 0
	return g
}

func TestWhatIsGatheredArrivesWhole(t *testing.T) {
	for name, alone := range map[string]int{"from the start": 0, "after some that were written as they came": aloneMost} {
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
	if err := g.Close(); err != nil { // which writes the rest
		t.Fatal(err)
	}
	next := map[int]int{}
	for line := range bytes.Lines(<-got) {
		var w, i int
		if _, err := fmt.Sscanf(string(line), "%d %d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("the line %q came where %d of %d was due: %v", line, next[w], w, err)
		}
		next[w]++
	}
	for w := range writers {
		if next[w] != lines {
			t.Errorf("%d lines of %d came", next[w], w)
		}
	}
	if n := under.writes.Load(); n >= writers*lines/2 {
		t.Errorf("%d lines took %d writes", writers*lines, n)
	}
}

// TestMessagesAreWrittenBetweenOthers holds messages that are published past the
// client to be whole, among what the client writes, and each in its place among
// those of who published it.
func TestMessagesAreWrittenBetweenOthers(t *testing.T) {
	const writers, each = 8, 200
	here, there := net.Pipe()
	g := gather(here, time.Minute)
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(there)
		got <- all
	}()
	if err := g.publish(&Message{Subject: "s"}); !errors.Is(err, errWrapped) {
		t.Fatalf("before the client said anything a message gave %v", err)
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
			t.Fatalf("%q comes before %q", lines[at], lines[at+1])
		}
		if _, err := fmt.Sscanf(lines[at+1], "%d %d", &w, &i); err != nil || next[w] != i {
			t.Fatalf("the message %q comes where %d of %d is due: %v", lines[at+1], next[w], w, err)
		}
		next[w]++
	}
	for w := range writers {
		if next[w] != each {
			t.Errorf("%d messages of %d came", next[w], w)
		}
	}
}

// TestNothingIsWrittenInsideOfAWrapping: where something is wrapped around what the
// client says, such as TLS, nobody else can say anything.
func TestNothingIsWrittenInsideOfAWrapping(t *testing.T) {
	here, there := net.Pipe()
	g := gather(here, time.Minute)
	defer g.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	for _, said := range []string{"\x16\x03\x01", connect + "{}\r\n"} {
		if _, err := io.WriteString(g, said); err != nil {
			t.Fatal(err)
		}
		if err := g.publish(&Message{Subject: "s"}); !errors.Is(err, errWrapped) {
			t.Errorf("after %q a message gave %v", said, err)
		}
	}
}

func TestWhatCanNotBeWrittenIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		g := gathering(here, time.Minute)
		_ = there.Close()
		for range 2 { // the first may only be taken over
			_, _ = g.Write([]byte("x"))
			synctest.Wait()
		}
		if _, err := g.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("writing to nobody gave %v", err)
		}
		if _, err := g.Read(make([]byte, 1)); err == nil {
			t.Error("whoever reads does not find out")
		}
		_ = g.Close()
	})
}

// deaf is a connection whose peer does not read, yet.
func deaf(t *testing.T, timeout time.Duration) (g *gathered, peer net.Conn) {
	here, peer := net.Pipe()
	g = gather(here, timeout)
	t.Cleanup(func() { _ = g.Close() })
	return g, peer
}

func TestWhoSpeaksToAPeerThatDoesNotReadGoesOnSoon(t *testing.T) {
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
		// The first finds out that nobody reads, and the next that there is no room.
		if took := time.Since(began); took > 2*writeSoon {
			t.Errorf("to say all that took %v", took)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("when the peer reads something else comes: %v", err)
		}
		synctest.Wait()
		if g.stuck || len(g.waiting) > 0 {
			t.Error("it is taken for stuck, though all was read")
		}
	})
}

func TestAPeerThatNeverReadsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, _ := deaf(t, time.Minute)
		if _, err := g.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if _, err := g.Write([]byte("x")); err == nil {
			t.Errorf("after %v more is taken", time.Since(began))
		}
		g, _ = deaf(t, time.Minute)
		much, taken := make([]byte, gatherMost), 0
		var err error
		for err == nil && taken <= 2*gatherLimit {
			_, err = g.Write(much)
			taken += len(much)
		}
		if !errors.Is(err, errClogged) || taken > gatherLimit+4*gatherMost {
			t.Errorf("%d bytes were taken: %v", taken, err)
		}
	})
}

func TestASlowPeerInThisProcessIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g, peer := deaf(t, 0)
		g.alone = 0
		much := make([]byte, gatherMost+1)
		time.AfterFunc(time.Hour, func() { _, _ = io.Copy(io.Discard, peer) })
		for range 3 { // one is being written, one waits, and one has no room
			if _, err := g.Write(much); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if took := time.Since(began); took != time.Hour {
			t.Errorf("that took %v", took)
		}
	})
}

func TestClosingWaitsForNobody(t *testing.T) {
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
			t.Error("a closed connection takes more")
		}
		_ = g.Close() // once more does nothing
	})
}

// Nobody closes a connection that came to nothing: what writes to it ends all the same.
func TestNothingIsLeftOfAConnectionThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _ := net.Pipe()
		g := gathering(here, 0)
		synctest.Wait() // until somebody waits for what to write
		g.giveUp(errLeft)
		synctest.Wait()
		select {
		case <-g.ended:
		default:
			t.Error("it waits for more to write")
			_ = g.Close()
		}
	})
}

func TestOneWhoSpeaksAloneWritesAsItComes(t *testing.T) {
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
	for i := range 3 * aloneMost { // some of them are handed to the writer, to see
		if _, err := fmt.Fprintf(g, "%d", i); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != fmt.Sprint(i) {
			t.Fatalf("%q came where %d was due", s, i)
		}
	}
}

package faults

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

// pipes is a listener in memory. dial creates its connections.
type pipes struct {
	made chan net.Conn
	end  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.end); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns a new connection to the listener, as a net.Dialer does.
func (p *pipes) dial(context.Context) (net.Conn, error) {
	mine, its := net.Pipe()
	p.made <- its
	return mine, nil
}

func newPipes() *pipes { return &pipes{made: make(chan net.Conn, 8), end: make(chan struct{})} }

// linked returns a link and the two ends of a connection through it.
func linked(t *testing.T) (k *Link, client, server net.Conn) {
	clients, servers := newPipes(), newPipes()
	k = newLink(clients, servers.dial)
	client, err := clients.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = servers.Accept(); err != nil {
		t.Fatal(err)
	}
	return k, client, server
}

// closed closes the link. In a bubble, a goroutine that it left would fail the test.
func closed(t *testing.T, k *Link) {
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// send writes pieces without waiting for them to arrive.
func send(c net.Conn, pieces ...string) {
	go func() {
		for _, p := range pieces {
			if _, err := io.WriteString(c, p); err != nil {
				return
			}
		}
	}()
}

// receive reads n bytes, and returns how long that took.
func receive(t *testing.T, c net.Conn, n int) (string, time.Duration) {
	t.Helper()
	began := time.Now()
	body := make([]byte, n)
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	return string(body), time.Since(began)
}

func TestALinkThatNobodyTouchesOnlyCarries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client, server := linked(t)
		defer closed(t, k)
		send(client, "there")
		if got, took := receive(t, server, 5); got != "there" || took != 0 {
			t.Errorf("%q arrived after %v", got, took)
		}
		send(server, "back")
		if got, took := receive(t, client, 4); got != "back" || took != 0 {
			t.Errorf("%q arrived after %v", got, took)
		}
	})
}

func TestALatencyIsAddedToEachWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client, server := linked(t)
		defer closed(t, k)
		k.Set(Conditions{Latency: time.Second, Jitter: time.Second / 2})
		send(client, "a", "b", "c", "d") // all in transit at the same time, in their order
		got, took := receive(t, server, 4)
		if got != "abcd" || took < time.Second || took >= time.Second*3/2 {
			t.Errorf("%q arrived after %v", got, took)
		}
		send(server, "x")
		if _, took := receive(t, client, 1); took < time.Second || took >= time.Second*3/2 {
			t.Errorf("the way back took %v", took)
		}
		k.Set(Conditions{})
		send(client, "e")
		if _, took := receive(t, server, 1); took != 0 {
			t.Errorf("a healed network took %v", took)
		}
	})
}

func TestHealingHurriesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client, server := linked(t)
		defer closed(t, k)
		k.Set(Conditions{Latency: time.Hour})
		send(client, "slow")
		synctest.Wait()
		time.AfterFunc(time.Second, func() { k.Set(Conditions{}) })
		if _, took := receive(t, server, 4); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestACutLetsNothingThroughUntilItHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client, server := linked(t)
		defer closed(t, k)
		k.Set(Conditions{Cut: true})
		send(client, "held")
		time.AfterFunc(5*time.Second, func() { k.Set(Conditions{}) })
		if got, took := receive(t, server, 4); got != "held" || took != 5*time.Second {
			t.Errorf("%q arrived after %v", got, took)
		}
	})
}

func TestNobodyIsConnectedThroughACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, servers := newPipes(), newPipes()
		k := newLink(clients, servers.dial)
		defer closed(t, k)
		k.Set(Conditions{Cut: true})
		if _, err := clients.dial(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(servers.made); n != 0 {
			t.Fatalf("%d connections came through", n)
		}
		k.Set(Conditions{})
		if _, err := servers.Accept(); err != nil {
			t.Error(err)
		}
	})
}

func TestABoundedNetworkTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client, server := linked(t)
		defer closed(t, k)
		k.Set(Conditions{Rate: 1000})
		send(client, string(make([]byte, 3000)), string(make([]byte, 2000)))
		if _, took := receive(t, server, 5000); took != 5*time.Second {
			t.Errorf("5000 bytes at 1000 a second took %v", took)
		}
	})
}

func TestALinkHoldsNoMoreThanANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, client, _ := linked(t)
		defer closed(t, k)
		k.Set(Conditions{Cut: true})
		var written atomic.Int64
		go func() {
			for {
				n, err := client.Write(make([]byte, pieceSize))
				if err != nil {
					return
				}
				written.Add(int64(n))
			}
		}()
		synctest.Wait()
		if n := written.Load(); n == 0 || n > (onTheWay+2)*pieceSize {
			t.Errorf("a cut link took %d bytes", n)
		}
	})
}

// echo starts a server on a real socket that sends back what it reads, and returns its
// address.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// through returns a link to target and a connection through it.
func through(t *testing.T, target string) (*Link, *net.TCPConn) {
	k, err := NewLink(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, k) })
	c, err := net.Dial("tcp", k.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return k, c.(*net.TCPConn)
}

func TestALinkCarriesEveryByteOfRealSockets(t *testing.T) {
	k, c := through(t, echo(t))
	body := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(body)
	go func() {
		_, _ = c.Write(body[:1<<20])
		k.Set(Conditions{Latency: time.Millisecond, Jitter: time.Millisecond})
		_, _ = c.Write(body[1<<20 : 2<<20])
		k.Set(Conditions{})
		_, _ = c.Write(body[2<<20:])
		_ = c.CloseWrite() // the end of one way arrives too, and ends the other way
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes of %d came back, or others: %v", len(got), len(body), err)
	}
}

func TestAResetEndsWhatIsOpenAndNothingElse(t *testing.T) {
	target := echo(t)
	k, c := through(t, target)
	send(c, "hello")
	receive(t, c, 5)
	k.Reset()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was reset is open")
	}
	again, err := net.Dial("tcp", k.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	send(again, "hello")
	receive(t, again, 5)
}

func TestAServerThatIsGoneIsGoneThroughALinkToo(t *testing.T) {
	free, err := bustest.FindAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewLink(free[0])
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, k)
	c, err := net.Dial("tcp", k.Addr())
	if err != nil {
		return // it was closed before the client saw it as open
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("somebody answered where nobody is")
	}
}

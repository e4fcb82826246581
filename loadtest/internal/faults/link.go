package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conditions describe a link. The zero Conditions do not affect the traffic.
type Conditions struct {
	// Latency is added to each way, and up to Jitter more. Data stays in order.
	Latency, Jitter time.Duration
	// Rate limits the bytes per second of each way; 0: no limit.
	Rate int64
	// Cut blocks all traffic. Data and new connections wait until the network comes back.
	Cut bool
}

// A Link is a network between some clients and one server: it carries TCP
// connections, and can be slow, silent or cut while they are open.
type Link struct {
	listener net.Listener
	dial     func(ctx context.Context) (net.Conn, error)
	end      context.Context // ends with Close
	stop     context.CancelFunc
	work     sync.WaitGroup
	bytes    atomic.Int64 // of both directions

	mu      sync.Mutex // guards what follows
	now     Conditions
	changed chan struct{} // closed at the next change
	pairs   map[*pair]bool
	free    [2]time.Time // by direction: when a network with a rate has carried all of its data
}

// NewLink listens on a free port of the loopback interface and forwards connections to
// target.
func NewLink(target string) (*Link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a link to %s: %w", target, err)
	}
	return newLink(l, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", target)
	}), nil
}

func newLink(l net.Listener, dial func(ctx context.Context) (net.Conn, error)) *Link {
	k := &Link{listener: l, dial: dial, changed: make(chan struct{}), pairs: map[*pair]bool{}}
	k.end, k.stop = context.WithCancel(context.Background())
	k.work.Go(k.accept)
	return k
}

// Addr returns the address for clients.
func (k *Link) Addr() string { return k.listener.Addr().String() }

// Bytes returns the number of bytes that the link has received, in both directions.
func (k *Link) Bytes() int64 { return k.bytes.Load() }

// Set changes the conditions of the link, also for data in transit.
func (k *Link) Set(c Conditions) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = c
	close(k.changed)
	k.changed = make(chan struct{})
}

// conditions returns the current conditions, and a channel that is closed when they change.
func (k *Link) conditions() (Conditions, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.changed
}

// Reset closes all connections at once, as a machine does that has restarted. New
// connections are possible.
func (k *Link) Reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.pairs {
		p.reset()
	}
}

// Close ends the link and all its connections, and waits for them.
func (k *Link) Close() error {
	k.stop()
	err := k.listener.Close()
	k.Reset()
	k.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (k *Link) accept() {
	for {
		c, err := k.listener.Accept()
		if err != nil {
			return // it was closed
		}
		k.work.Go(func() { k.carry(c) })
	}
}

// carry forwards one connection until both ways have ended.
func (k *Link) carry(client net.Conn) {
	p := &pair{client: client}
	if !k.add(p) {
		return
	}
	defer k.remove(p)
	if !k.pass(atOnce) {
		return
	}
	server, err := k.dial(k.end)
	if err != nil || !p.to(server) {
		p.reset() // the server is not reachable: the client gets a reset, as from a direct connection
		return
	}
	var both sync.WaitGroup
	both.Go(func() { newPipe(k, there, client, server).run(p) })
	both.Go(func() { newPipe(k, back, server, client).run(p) })
	both.Wait()
}

func (k *Link) add(p *pair) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end.Err() != nil {
		p.reset()
		return false
	}
	k.pairs[p] = true
	return true
}

func (k *Link) remove(p *pair) {
	k.mu.Lock()
	delete(k.pairs, p)
	k.mu.Unlock()
	p.close()
}

// pass waits until data may pass: when it is due and the link is not cut. The conditions
// decide when it is due, and they may change during the wait. It returns false if the link
// was closed.
func (k *Link) pass(due func(Conditions) time.Time) bool {
	for k.end.Err() == nil {
		c, changed := k.conditions()
		left := time.Until(due(c))
		if !c.Cut && left <= 0 {
			return true
		}
		if c.Cut {
			left = forever
		}
		k.pause(left, changed)
	}
	return false
}

// forever is longer than any link lives.
const forever = time.Duration(1<<63 - 1)

// pause waits until the conditions may have changed.
func (k *Link) pause(d time.Duration, changed <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-k.end.Done():
	}
}

// atOnce is the due time of data that only a cut delays.
func atOnce(Conditions) time.Time { return time.Time{} }

// carried returns when a network with a rate has carried the given bytes.
func (k *Link) carried(d direction, bytes int) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.now.Rate <= 0 {
		return now
	}
	if k.free[d].Before(now) {
		k.free[d] = now
	}
	k.free[d] = k.free[d].Add(time.Duration(float64(bytes) / float64(k.now.Rate) * float64(time.Second)))
	return k.free[d]
}

// jittered returns a random extra delay.
func (c Conditions) jittered() time.Duration {
	if c.Jitter <= 0 {
		return c.Latency
	}
	return c.Latency + rand.N(c.Jitter)
}

package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// How a connection finds out that its server stands still, or cannot be reached any
// more, although the connection is open. Where another server is known it goes there:
// so soon that what is asked next is answered, and so late that no server is left which
// is only busy. Where none is known it stays: see pingEvery.
const (
	lookEvery = 2 * time.Second
	silentFor = 3 * time.Second
	// lateFor is by how much the end of that wait may be noticed late: if it is later,
	// this process stood still itself.
	lateFor = time.Second
)

// errStandsStill is why a server is left.
var errStandsStill = fmt.Errorf("the server did not answer for %v, and the client knows another one", silentFor)

// A pulse looks for signs of life of a connection's server until the connection is closed.
type pulse struct {
	nc   *nats.Conn
	last *lastGathered
}

// look looks once, which takes as long as the server is silent, and again later.
func (p *pulse) look() {
	if conn := p.last.conn.Load(); conn != nil && p.nc.IsConnected() && len(p.nc.Servers()) > 1 && p.silent(conn) {
		conn.giveUp(errStandsStill)
	}
	p.again()
}

// again looks later, unless the connection is closed.
func (p *pulse) again() {
	if !p.nc.IsClosed() {
		time.AfterFunc(lookEvery, p.look)
	}
}

// silent reports whether the server gives no sign of life. What comes of other things is
// one, too: the answer stands behind all that the server has to send.
func (p *pulse) silent(conn *gathered) bool {
	began, heard := time.Now(), conn.heard.Load()
	ctx, cancel := context.WithTimeout(context.Background(), silentFor)
	defer cancel()
	err := p.nc.FlushWithContext(ctx)
	return errors.Is(err, context.DeadlineExceeded) && conn.heard.Load() == heard && time.Since(began) < silentFor+lateFor
}

package natsconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// A client that knows several servers checks every checkEvery whether its server still
// answers, and leaves one that was silent for silentFor. That is soon enough for the next
// call to be answered in time, and late enough to stay with a server that is only busy. A
// client that knows one server stays with it.
const (
	checkEvery = 2 * time.Second
	silentFor  = 3 * time.Second
	// lateFor is how late the end of silentFor may be noticed. If it is noticed later, this
	// process itself was suspended.
	lateFor = time.Second
)

// errSilent is why the client leaves a server.
var errSilent = fmt.Errorf("the server did not answer for %v, and the client knows another one", silentFor)

// Watch checks the remote server of nc from time to time, until nc is closed.
func (c *Connector) Watch(nc *nats.Conn) {
	if c.Plain || c.InProcess != nil || nc.IsClosed() {
		return
	}
	time.AfterFunc(checkEvery, func() {
		if conn := c.last.Load(); conn != nil && nc.IsConnected() && len(nc.Servers()) > 1 && conn.isSilent(nc) {
			conn.abort(errSilent)
		}
		c.Watch(nc)
	})
}

// isSilent reports whether nothing arrives from the server within silentFor. Any data counts,
// because the answer to the ping queues behind it.
func (c *conn) isSilent(nc *nats.Conn) bool {
	began, reads := time.Now(), c.reads.Load()
	ctx, cancel := context.WithTimeout(context.Background(), silentFor)
	defer cancel()
	err := nc.FlushWithContext(ctx)
	return errors.Is(err, context.DeadlineExceeded) && c.reads.Load() == reads && time.Since(began) < silentFor+lateFor
}

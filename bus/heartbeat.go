package bus

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
// client that knows one server stays with it: see pingEvery.
const (
	checkEvery = 2 * time.Second
	silentFor  = 3 * time.Second
	// lateFor is how late the end of silentFor may be noticed. If it is noticed later, this
	// process itself was suspended.
	lateFor = time.Second
)

// errSilentServer is why the client leaves a server.
var errSilentServer = fmt.Errorf("the server did not answer for %v, and the client knows another one", silentFor)

// A heartbeat checks a connection's server until the connection is closed.
type heartbeat struct {
	nc   *nats.Conn
	last *lastGathered
}

// check checks once, which takes as long as the server is silent, and schedules the next check.
func (h *heartbeat) check() {
	if conn := h.last.conn.Load(); conn != nil && h.nc.IsConnected() && len(h.nc.Servers()) > 1 && h.isSilent(conn) {
		conn.giveUp(errSilentServer)
	}
	h.schedule()
}

// schedule schedules the next check, unless the connection is closed.
func (h *heartbeat) schedule() {
	if !h.nc.IsClosed() {
		time.AfterFunc(checkEvery, h.check)
	}
}

// isSilent reports whether nothing arrives from the server within silentFor. Any data counts,
// because the answer to the ping queues behind it.
func (h *heartbeat) isSilent(conn *gathered) bool {
	began, heard := time.Now(), conn.heard.Load()
	ctx, cancel := context.WithTimeout(context.Background(), silentFor)
	defer cancel()
	err := h.nc.FlushWithContext(ctx)
	return errors.Is(err, context.DeadlineExceeded) && conn.heard.Load() == heard && time.Since(began) < silentFor+lateFor
}

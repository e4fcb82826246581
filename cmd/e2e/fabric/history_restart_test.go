package fabric_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// successor is the way to whichever broker there is now.
type successor struct{ broker atomic.Pointer[app.Broker] }

func (s *successor) InProcessConn() (net.Conn, error) { return s.broker.Load().InProcessConn() }

// Parts that were stored are there after their broker is gone, for agents that name
// them and for workers that never saw them.
func TestAConversationOutlivesItsBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, `
hooks:
  BeforeFinalResponse:
    - {name: go, type: builtin, handler: sums, pool: go, needs: [history], fail_closed: true}
`)
		line := &successor{}
		line.broker.Store(f.broker)
		c, err := client.Connect(t.Context(), client.Options{InProcess: line, Timeout: 5 * time.Minute, Logger: slog.New(f.log)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		all := talk(50)
		asks := func() {
			t.Helper()
			v, err := c.Ask(t.Context(), &schema.Event{HookType: schema.BeforeFinalResponse, AgentID: "a", Message: []byte(`"done"`)},
				client.History(func() []schema.Message { return all }))
			if err != nil || len(v.Injections) != 1 || v.Injections[0].Content != summed(all) {
				t.Fatalf("%v: %+v", err, v)
			}
		}
		nc := f.serve("one", handlers{"sums": sums})
		asks()
		nc.Close()
		ctx, cancel := context.WithTimeout(t.Context(), stopTime)
		defer cancel()
		if err := f.broker.Close(ctx); err != nil {
			t.Fatal(err)
		}
		f.broker, err = app.New(t.Context(), app.Options{
			Config: filepath.Join(f.dir, "hooks.yaml"), Data: filepath.Join(f.dir, "data"), Sync: time.Minute, Logger: slog.New(f.log),
		})
		if err != nil {
			t.Fatal(err)
		}
		line.broker.Store(f.broker)
		f.serve("two", handlers{"sums": sums})
		asks()
		all = append(all, talk(30)...)
		asks()
	})
}

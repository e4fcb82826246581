package server_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

// Eight agents send the largest message at one moment. Its reader, in this process as a broker or on the network as a
// worker, must get all of them and stay connected.
func TestABurstOfLargeMessagesArrives(t *testing.T) { //nolint:tparallel // its cases share one server
	t.Parallel()
	const senders = 8
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	for name, connect := range map[string]func(bus.Options) (*nats.Conn, error){
		"in this process": func(o bus.Options) (*nats.Conn, error) { return s.Connect(within(t), o) },
		"from elsewhere": func(o bus.Options) (*nats.Conn, error) {
			o.URL = s.ClientURL()
			return bus.Connect(within(t), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lost := make(chan struct{}, 1)
			reader, err := connect(bus.Options{Name: "reader", OnState: func(up bool) {
				if !up {
					lost <- struct{}{}
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			var got sync.WaitGroup
			got.Add(senders)
			sub, err := reader.Subscribe("large", func(*nats.Msg) { got.Done() })
			if err == nil {
				err = sub.SetPendingLimits(-1, -1)
			}
			if err == nil {
				err = reader.FlushWithContext(within(t))
			}
			if err != nil {
				t.Fatal(err)
			}
			payload := make([]byte, schema.MaxEvent)
			var all []*nats.Conn
			for i := range senders {
				nc, err := bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Name: fmt.Sprint("sender-", i)})
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				all = append(all, nc)
			}
			for _, nc := range all {
				go func() {
					_ = nc.Publish("large", payload) // what does not arrive is missed below
				}()
			}
			arrived := make(chan struct{})
			go func() { got.Wait(); close(arrived) }()
			select {
			case <-arrived:
			case <-lost:
				t.Error("the reader was disconnected")
			case <-time.After(time.Minute):
				t.Error("some messages did not arrive")
			}
			reader.Close()
		})
	}
}

package bus

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// A mumbler is a server that greets a client and answers nothing after that; a busy one has
// other things to send.
type mumbler struct{ busy bool }

func (m mumbler) InProcessConn() (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		fmt.Fprint(there, "INFO {\"headers\":true,\"max_payload\":1048576}\r\n")
		for lines := bufio.NewScanner(there); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "PING") {
				fmt.Fprint(there, "PONG\r\n")
				break
			}
		}
		ended := make(chan struct{})
		go func() {
			for m.busy {
				select {
				case <-time.After(time.Second):
					fmt.Fprint(there, "+OK\r\n")
				case <-ended:
					return
				}
			}
		}()
		_, _ = io.Copy(io.Discard, there)
		close(ended)
	}()
	return here, nil
}

func TestAServerThatSendsOtherThingsIsNotSilent(t *testing.T) {
	for name, busy := range map[string]bool{"it has other things to send": true, "it sends nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &gatheringServer{server: mumbler{busy}}
				nc, err := nats.Connect("", nats.InProcessServer(s), nats.NoReconnect())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				p := pulse{nc: nc, last: &s.last}
				if p.silent(s.last.conn.Load()) == busy {
					t.Errorf("silent: %v", !busy)
				}
			})
		})
	}
}

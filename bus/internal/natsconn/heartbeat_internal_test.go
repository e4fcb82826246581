package natsconn

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

// A silentServer greets a client and then answers nothing. A busy one still sends other data.
type silentServer struct{ busy bool }

func (s silentServer) InProcessConn() (net.Conn, error) {
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
			for s.busy {
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

func TestAServerThatSendsOtherDataIsNotSilent(t *testing.T) {
	for name, busy := range map[string]bool{"it sends other data": true, "it sends nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(Config{Timeout: firstLimit, InProcess: silentServer{busy}})
				nc, err := nats.Connect("", append(c.Options(), nats.NoReconnect())...)
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if c.last.Load().isSilent(nc) == busy {
					t.Errorf("silent: %v", !busy)
				}
			})
		})
	}
}

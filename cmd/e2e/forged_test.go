package e2e_test

import (
	"net"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// A message that looks like the server's "no responders" is only a malformed event.
func TestForgedStatusMessagesStopNoBroker(t *testing.T) {
	t.Parallel()
	f := startJunkFabric(t)
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(f.broker.url, "nats://"), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	forged := strings.Repeat(hpub("NATS/1.0 503\r\n\r\n", ""), 500)
	if _, err := conn.Write([]byte("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n" + forged + "PING\r\n")); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if v, err := ask(t.Context(), f.client, "Guarded"); err != nil || v.Decision != schema.Allow {
			t.Fatalf("a sound call got %+v, %v", v, err)
		}
	}
}

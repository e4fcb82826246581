package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// closed is what a server says that only hangs up.
const closed = "the connection was closed"

// junkRaw is what no client library would send.
func junkRaw() []junk {
	var all []junk
	for _, c := range []struct{ name, want, bytes string }{
		{"no operation of NATS", "Unknown Protocol Operation", "GIVE ME ALL\r\n"},
		{"HTTP", "Unknown Protocol Operation", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"binary", "-ERR", "\x16\x03\x01\x02\x00\x01\x00\r\n"},
		{"a negative size", closed, "PUB hook.v1.event.a.PreToolUse -1\r\n"},
		{"more than the server takes", "Maximum Payload Violation", fmt.Sprintf("PUB hook.v1.event.a.PreToolUse %d\r\n", schema.MaxPayload+1)},
		{"headers that are longer than the message", closed, "HPUB hook.v1.event.a.PreToolUse 20 10\r\n"},
		{"a line that does not end", "-ERR", strings.Repeat("x", 64<<10)},
		{"headers without their first line", "Hook-Id is missing", hpub("Hook-Id: x\r\n\r\n", "{}")},
		{"headers of another version", "Hook-Id is missing", hpub("NATS/9.9\r\n\r\n", "{}")},
		{"headers without a colon", "Hook-Id is missing", hpub("NATS/1.0\r\nHook-Id\r\n\r\n", "{}")},
		{"binary headers", "Hook-Id is missing", hpub("NATS/1.0\r\n\x00\xff: \xfe\r\n\r\n", "{}")},
		{"headers that do not end", "Hook-Id is missing", hpub("NATS/1.0\r\nHook-Id: x", "{}")},
	} {
		all = append(all, junk{c.name, c.want, func(t testing.TB, f *junkFabric) string { return f.raw(t, c.bytes) }})
	}
	return all
}

// hpub is a question with headers as they are given.
func hpub(header, body string) string {
	return fmt.Sprintf("HPUB hook.v1.event.junk.PreToolUse _INBOX.here %d %d\r\n%s%s\r\n", len(header), len(header)+len(body), header, body)
}

// raw sends bytes to the bus and returns what comes back: an error, or a verdict.
func (f *junkFabric) raw(t testing.TB, bytes string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(f.broker.url, "nats://"), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	// A server that has heard enough closes the connection while we write.
	_, _ = conn.Write([]byte("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB _INBOX.here 1\r\n" + bytes))
	said := bufio.NewReader(conn)
	for {
		line, err := said.ReadString('\n')
		if strings.HasPrefix(line, "-ERR") || strings.HasPrefix(line, "{") {
			return line
		}
		if err != nil {
			return closed + ": " + err.Error()
		}
		if strings.HasPrefix(line, "MSG ") {
			verdict, _ := said.ReadString('\n')
			return verdict
		}
	}
}

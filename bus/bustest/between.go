package bustest

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// between is the API prefix of a proxy between a client and JetStream.
const between = "BETWEEN"

// Between returns a JetStream behind a proxy, such as a leader that was cut off. says may answer or drop a request and
// return true; other requests go to js.
func Between(t testing.TB, js jetstream.JetStream, says func(asked *nats.Msg) bool) jetstream.JetStream {
	t.Helper()
	nc := js.Conn()
	sub, err := nc.Subscribe(between+".>", func(m *nats.Msg) {
		if says(m) {
			return
		}
		on := *m
		on.Subject = Beyond(m)
		_ = nc.PublishMsg(&on)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	behind, err := jetstream.NewWithAPIPrefix(nc, between)
	if err != nil {
		t.Fatal(err)
	}
	return behind
}

// Beyond returns the real subject of a request to the proxy.
func Beyond(asked *nats.Msg) string {
	subject := strings.TrimPrefix(asked.Subject, between+".")
	if strings.HasPrefix(subject, "$KV.") {
		return subject
	}
	return jetstream.DefaultAPIPrefix + subject
}

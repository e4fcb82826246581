package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
)

// Who is at a leaf is answered by the hub, and stores there, over TLS.
func TestALeafIsAPartOfItsHub(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	at := bustest.FreeAddresses(t, 1)[0]
	hub := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", TLS: ca.Issue(t, "hub"), Leaf: &server.Leaf{Listen: at}})
	leaf := bustest.StartWith(t, server.Options{Leaf: &server.Leaf{Remotes: []string{"tls://" + at}, CA: ca.File}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := leaf.Await(ctx, 0, func(waiting string) { t.Log(waiting) }); err != nil {
		t.Fatal(err)
	}
	nc := bustest.Connect(t, hub, "responder")
	if _, err := nc.Subscribe("question", func(m *nats.Msg) { _ = m.Respond([]byte("answer")) }); err != nil {
		t.Fatal(err)
	}
	if err := flush(t, nc); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the leaf knows who answers", func() bool { return leaf.Interest("question") })
	asker := bustest.Connect(t, leaf, "asker")
	if m, err := asker.RequestWithContext(ctx, "question", nil); err != nil || string(m.Data) != "answer" {
		t.Errorf("at the leaf the answer is %v, %v", m, err)
	}
	put(t, hub)
	js, err := jetstream.New(asker)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(ctx, "k"); err != nil || string(e.Value()) != "v" {
		t.Errorf("at the leaf the key is %v, %v", e, err)
	}
}

func TestALeafReportsWhyItWaits(t *testing.T) {
	t.Parallel()
	unused := bustest.FreeAddresses(t, 1)[0]
	other := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	for remote, want := range map[string]string{
		unused:            "no server answers; start a broker with --leaf-listen there",
		other.ClientURL(): "refuses this one",
	} {
		leaf := bustest.StartWith(t, server.Options{Leaf: &server.Leaf{Remotes: []string{remote}}})
		wantError(t, waits(t, leaf), want)
	}
	for remote, want := range map[string]string{
		"http://h:1":          "use nats-leaf://HOST:PORT",
		"nats-leaf://u:p@h:1": "name a credentials file",
		"h":                   "is not an address to listen on",
	} {
		_, err := server.Start(t.Context(), server.Options{Dir: t.TempDir(), Leaf: &server.Leaf{Remotes: []string{remote}}})
		wantError(t, err, want)
	}
	_, err := server.Start(t.Context(), server.Options{Dir: t.TempDir(), Leaf: &server.Leaf{Listen: "0.0.0.0:0"}})
	wantError(t, err, "broker creds init")
}

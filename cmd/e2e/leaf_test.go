package e2e_test

import (
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// A site's broker uses the configuration and the workers of the hub, and items from the site are stored at the hub.
func TestLeaf(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), bustest.FreeAddresses(t, 1)[0]
	hub := startBroker(t, "--leaf-listen", at, "--config", goKind.config(t, dir))
	goKind.worker(t, hub.url, "w0", dir)
	awaitWorkers(t, connect(t, hub.url), "w0")
	site := startBroker(t, "--leaf-remotes", "nats-leaf://"+at, "--no-worker")
	nc := connect(t, site.url)
	awaitWorkers(t, nc, "w0")
	c := dial(t, site.url)
	for tool, want := range map[string]schema.Decision{free: schema.Allow, guarded: schema.Deny} {
		if v, err := ask(t.Context(), c, tool); err != nil || v.Decision != want || v.ExecutedHooks[0].Worker != "w0" {
			t.Errorf("a %s call at the site got %+v, %v", tool, v, err)
		}
	}
	if err := control(nc, "inject", "listener", schema.InjectRequest{Content: "from the site"}, &schema.Receipt{}); err != nil {
		t.Fatal(err)
	}
	var pending schema.PendingAnswer
	err := eventually("it waits at the hub", func() bool {
		return control(connect(t, hub.url), "pending", "listener", schema.PendingRequest{}, &pending) == nil && pending.Total == 1
	})
	if err != nil {
		t.Error(err)
	}
}

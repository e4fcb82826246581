package clients_test

import (
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
)

// TestWithoutHooks is what all other tests differ from: the tool runs, and the
// model sees what it printed.
func TestWithoutHooks(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		p := h.play(model.Turn{Calls: []model.Call{h.shell("touch marker; echo 41 + 1 | sed 's/41 . 1/forty-two/'")}})
		if !h.ran("marker") {
			t.Error("the command did not run")
		}
		p.mustSee(1, "forty-two")
	})
}

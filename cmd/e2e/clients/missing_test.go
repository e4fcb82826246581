package clients_test

import (
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
)

// TestACallWithoutAShimDoesNotRun takes the program away once the prompt was let through: a
// hook that cannot start lets the call pass in some clients.
func TestACallWithoutAShimDoesNotRun(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		shim := h.write("bin/agentshim", "#!/bin/sh\ncase \"$*\" in\n"+
			"*UserPromptSubmit*|*BeforeAgent*|*userPromptSubmitted*|*chat.message*) rm -f \"$0\" ;;\nesac\n"+
			"exec '"+program("agentshim")+"' \"$@\"\n")
		h.install(byItself(), startFabric(t, "hooks: {}\n"), "--shim", shim)
		p, err := h.try(model.Turn{Calls: []model.Call{h.shell("touch ran")}}, model.Turn{Text: "so be it"})
		if h.ran("ran") {
			t.Errorf("the call ran: %v", err)
		}
		if len(p.requests) == 0 {
			t.Error("the prompt was refused, so that nothing was tried")
		}
	})
}

package session_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/schema"
)

// asked records the last question.
type asked struct{ event schema.Event }

func (a *asked) Ask(_ context.Context, q decide.Question) decide.Judgement {
	a.event = *q.Event
	return decide.Judgement{Verdict: &schema.Verdict{}}
}

// TestASessionIsIntroduced checks that the shim reports the host and the version once per session,
// and that the runtime's own labels take precedence over those that the shim found.
func TestASessionIsIntroduced(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no name: that sessions say theirs is not tested")
	}
	known := func() map[string]string { return map[string]string{"claude": "2.1.329", "cursor": "1.0.0"} }
	for _, test := range []struct{ name, payload, host, version string }{
		{"known from the installation", `{"hook_type":"SessionStart","runtime":"claude"}`, host, "2.1.329"},
		{"known from the environment", `{"hook_type":"SessionStart","runtime":"cursor"}`, host, "3.9.16"},
		{"said by the runtime", `{"hook_type":"SessionStart","runtime":"claude","labels":{"runtime_version":"9","host":"h"}}`, "h", "9"},
		{"unknown", `{"hook_type":"SessionStart","runtime":"vim"}`, host, ""},
		{"no session starts", `{"hook_type":"PreToolUse","tool_name":"Bash","runtime":"claude"}`, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := dialect.For("generic")
			if err != nil {
				t.Fatal(err)
			}
			var a asked
			x := session.Exchange{Asker: &a, Stderr: io.Discard, Settings: session.Settings{Runtime: "generic", Dialect: d, Versions: known,
				Env: func(name string) string { return map[string]string{"CURSOR_VERSION": "3.9.16"}[name] }}}
			x.Run(t.Context(), []byte(test.payload), nil)
			if got := a.event.Labels; got[schema.LabelHost] != test.host || got[schema.LabelVersion] != test.version {
				t.Errorf("labels %v", got)
			}
		})
	}
}

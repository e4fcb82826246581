package loop_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// The policy Allow does not allow tool calls of an agent that was frozen when the fabric
// was last reachable.
func TestAFrozenAgentUsesNoToolWithoutAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, func(e *schema.Event, v *schema.Verdict) {
			if e.HookType == schema.PreToolUse {
				v.Decision = silence
			}
		})
		f.Version, f.Signer, f.FreezeVersion = 7, bustest.Signer(1), 3
		f.Freezes = []schema.Freeze{{Agents: schema.AllAgents, Reason: "odd", By: "ops"}}
		o, _ := query(f)
		o.Unreachable, o.EventTimeout = loop.Allow, 2*time.Second
		l := start(t, o)
		if _, err := l.Run(t.Context(), "1+2?"); err != nil {
			t.Error(err)
		}
		lines := strings.Join(talk(l.History()), "\n")
		if !strings.Contains(lines, "`add` REFUSED") || !strings.Contains(lines, "by ops") || strings.Contains(lines, "c1 add 3") {
			t.Error(lines)
		}
	})
}

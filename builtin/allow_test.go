package builtin

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestAllowAllowsToolCallsOnly(t *testing.T) {
	for _, e := range schema.EventTypes() {
		want := schema.Result{}
		if e == schema.PreToolUse {
			want = schema.Allowed()
		}
		expect(t, want, answer(t, "allow", nil, event(e)))
	}
}

package builtin

import (
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/schema"
)

func TestAppendContextKeepsOneMessageAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock starts at 2000-01-01
		for name, c := range map[string]struct {
			options map[string]any
			role    string
			want    string
		}{
			"a text":             {map[string]any{"text": "Prices are in euros."}, schema.RoleSystem, "[context: test]\nPrices are in euros."},
			"the time":           {map[string]any{"time": true}, schema.RoleSystem, "[context: test]\nThe time is 2000-01-01T00:00:00Z."},
			"both, as of a user": {map[string]any{"text": "x", "time": true, "role": "user"}, schema.RoleUser, "[context: test]\nThe time is 2000-01-01T00:00:00Z.\nx"},
		} {
			t.Log(name)
			drop := schema.Effect{DropMessages: &schema.DropMessages{Role: c.role, Containing: "[context: test]"}}
			got := answer(t, "append_context", c.options, event(schema.BeforeLLMCall))
			expect(t, schema.Result{}.With(drop, schema.Append(c.role, c.want)), got)
			for _, e := range got.Effects {
				if _, err := schema.ParseEffect(e); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

package app

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestLacksPresetHooks(t *testing.T) {
	stage := schema.Hook{Type: schema.Builtin, Handler: schema.HumanInput}
	for name, c := range map[string]struct {
		cfg  schema.Config
		want bool
	}{
		"a preset without hooks":      {schema.Config{Presets: []string{"delivery"}, Hooks: []schema.Hook{{Name: "x"}}}, true},
		"no preset":                   {schema.Config{Hooks: []schema.Hook{{Name: "x"}}}, false},
		"a preset with a hook":        {schema.Config{Presets: []string{"delivery"}, Hooks: []schema.Hook{{Preset: "delivery"}}}, false},
		"a preset with a replacement": {schema.Config{Presets: []string{"delivery"}, Hooks: []schema.Hook{stage}}, false},
	} {
		if got := lacksPresetHooks(&c.cfg); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

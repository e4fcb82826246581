package aggregator

import (
	"fmt"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// BenchmarkConfigure is what a large configuration costs that makes way for another
// one: all calls that are counted meanwhile wait for it.
func BenchmarkConfigure(b *testing.B) {
	large := func(prefix string) *schema.Config {
		cfg := &schema.Config{Version: 1}
		for i := range 1000 {
			h := schema.Hook{Name: fmt.Sprint(prefix, i), Event: schema.PreToolUse, Pool: schema.DefaultPool, Mode: schema.Enforce}
			if i%2 == 0 {
				h.Mode = schema.Shadow
			}
			cfg.Hooks = append(cfg.Hooks, h)
		}
		return cfg
	}
	m := newMetrics(nil)
	m.configure(large("a"))
	b.ReportAllocs()
	for b.Loop() {
		m.configure(large("b"))
		m.configure(large("a"))
	}
}

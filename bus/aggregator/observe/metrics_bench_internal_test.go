package observe

import (
	"fmt"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// BenchmarkConfigure measures how long a large configuration takes to replace another one.
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
	m := NewMetrics(nil, Labels{})
	m.Configure(large("a"))
	b.ReportAllocs()
	for b.Loop() {
		m.Configure(large("b"))
		m.Configure(large("a"))
	}
}

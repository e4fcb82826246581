package hooksyaml_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
	"github.com/hookfabric/hookfabric/schema/match"
)

// sound checks the guarantees of every configuration.
func sound(t *testing.T, doc *hooksyaml.Document) {
	t.Helper()
	names := map[string]bool{}
	global := true
	preset := true
	for i := range doc.Config.Hooks {
		h := &doc.Config.Hooks[i]
		if !preset && h.Preset != "" {
			t.Errorf("the hook %q of a preset comes after a user's hook", h.Name)
		}
		preset = h.Preset != ""
		if h.Name == "" || len(h.Name) > 128 || names[h.Name] {
			t.Errorf("hook %d has the name %q, empty, long or taken", i, h.Name)
		}
		names[h.Name] = true
		if !global && h.Agent == "" {
			t.Errorf("the global hook %q comes after an agent's", h.Name)
		}
		global = h.Agent == ""
		soundHook(t, h)
	}
	for _, o := range doc.Config.Overrides {
		if o.Agent == "" || !o.Event.Known() {
			t.Errorf("the override %+v overrides nothing", o)
		}
	}
	travels(t, doc.Config)
}

func soundHook(t *testing.T, h *schema.Hook) {
	t.Helper()
	if !h.Event.Known() || (h.Handler == "") != (h.Type == schema.CEL) || (h.Pool == "") != h.Stage() {
		t.Errorf("the hook %+v lacks something", h)
	}
	if !slices.Contains(schema.Kinds(), h.Type) {
		t.Errorf("the hook %q has the type %q", h.Name, h.Type)
	}
	if h.Timeout.Std() < time.Millisecond || h.Timeout.Std() > 24*time.Hour {
		t.Errorf("the hook %q has the timeout %s", h.Name, h.Timeout)
	}
	if h.Mode != schema.Enforce && h.Mode != schema.Shadow || h.MaxConcurrent < 0 {
		t.Errorf("the hook %q has the mode %q and the bound %d", h.Name, h.Mode, h.MaxConcurrent)
	}
	for _, pattern := range []string{h.Matcher, h.Agent} {
		if _, err := match.Compile(pattern); err != nil {
			t.Errorf("the hook %q: %v", h.Name, err)
		}
	}
}

// travels checks that encoding does not change a configuration.
func travels(t *testing.T, c schema.Config) {
	t.Helper()
	raw, err := schema.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back schema.Config
	if err := schema.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, back); d != "" {
		t.Errorf("the configuration changes on its way (-before +after):\n%s", d)
	}
}

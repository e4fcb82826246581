package builtin

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// An optionRow is an option of a built-in hook in schema/HOOKS.md.
type optionRow struct{ name, example string }

var backquoted = regexp.MustCompile("`([^`]+)`")

func quotedIn(text string) (all []string) {
	for _, m := range backquoted.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// reference returns the events and the options of built-in hooks as schema/HOOKS.md has them.
func reference(t *testing.T) (events map[string]string, options map[string][]optionRow) {
	t.Helper()
	doc, err := os.ReadFile("../schema/HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "\n## Built-in hooks\n")
	text, _, _ = strings.Cut(text, "\n## ")
	events, options = map[string]string{}, map[string][]optionRow{}
	var hooks []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		switch {
		case strings.HasPrefix(line, "### "):
			hooks = quotedIn(line)
			for _, hook := range hooks {
				options[hook] = nil
			}
		case strings.HasPrefix(line, "| `") && hooks == nil:
			events[quotedIn(cells[0])[0]] = cells[1]
		case strings.HasPrefix(line, "| `"):
			for _, hook := range hooks {
				options[hook] = append(options[hook], optionRow{quotedIn(cells[0])[0], quotedIn(cells[len(cells)-1])[0]})
			}
		}
	}
	// Package rules has the hook and its tests.
	delete(events, schema.RulesHandler)
	delete(options, schema.RulesHandler)
	return events, options
}

// optionsOf returns the options that a hook says it has.
func optionsOf(t *testing.T, handler string) []string {
	t.Helper()
	for _, e := range schema.EventTypes() {
		_, err := Catalog(nil)[handler](schema.Hook{Name: "test", Handler: handler, Type: schema.Builtin, Event: e, Options: map[string]any{"no such option": 1}})
		if err == nil {
			t.Fatalf("%s takes an unknown option", handler)
		}
		if _, names, found := strings.Cut(err.Error(), "; it has "); found && names != "none" {
			return slices.Sorted(slices.Values(strings.Split(names, ", ")))
		}
	}
	return nil
}

func TestTheReferenceListsEveryBuiltinAndItsOptions(t *testing.T) {
	events, options := reference(t)
	catalog := slices.Sorted(maps.Keys(Catalog(nil)))
	if diff := cmp.Diff(catalog, slices.Sorted(maps.Keys(events))); diff != "" {
		t.Errorf("the built-in hooks in schema/HOOKS.md differ (-code +document):\n%s", diff)
	}
	if diff := cmp.Diff(catalog, slices.Sorted(maps.Keys(options))); diff != "" {
		t.Errorf("the sections of built-in hooks in schema/HOOKS.md differ (-code +document):\n%s", diff)
	}
	for _, handler := range catalog {
		var names []string
		for _, row := range options[handler] {
			names = append(names, row.name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(optionsOf(t, handler), names); diff != "" {
			t.Errorf("the options of %s in schema/HOOKS.md differ (-code +document):\n%s", handler, diff)
		}
	}
}

// The examples of options load together, at the events that the document names and at no other.
func TestTheReferencesEventsAndExamplesLoad(t *testing.T) {
	events, rows := reference(t)
	for handler, factory := range Catalog(nil) {
		options := map[string]any{}
		for _, row := range rows[handler] {
			if err := yaml.Unmarshal([]byte(row.example), &options); err != nil || !strings.HasPrefix(row.example, row.name+":") {
				t.Errorf("%s: the example of %s is %s: %v", handler, row.name, row.example, err)
			}
		}
		for _, e := range schema.EventTypes() {
			h := schema.Hook{Name: "test", Handler: handler, Type: schema.Builtin, Event: e, Timeout: schema.DefaultTimeout, Options: options}
			_, err := factory(h)
			loads := err == nil
			if h.Stage() { // the reader refuses the other events
				loads = loads && (h.Delivers() && e.TakesDelivery() || h.Gates() && e == schema.PreToolUse)
			}
			if named := namesEvent(events[handler], e); named != loads {
				t.Errorf("schema/HOOKS.md says that %s at %s loads: %t; it loads: %t (%v)", handler, e, named, loads, err)
			}
		}
	}
}

// namesEvent reports whether a cell of the document names an event.
func namesEvent(cell string, e schema.EventType) bool {
	listed := slices.Contains(quotedIn(cell), string(e))
	switch {
	case cell == "all":
		return true
	case cell == "delivery events":
		return e.TakesDelivery()
	case strings.HasPrefix(cell, "all but "):
		return !listed
	}
	return listed
}

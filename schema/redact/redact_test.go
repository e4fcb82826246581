package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
)

func rules(t testing.TB, all ...string) *redact.Rules {
	t.Helper()
	r, err := redact.Parse(all)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func document(t testing.TB, text string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := schema.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestRulesNamePlaces(t *testing.T) {
	const doc = `{"tool_input":{"env":{"A":"aaaa","B":["bbbb"]},"list":[{"key":"kkkk"},{"key":"llll","x":1}],"path":"p"},"key":5,"out":{"deep":{"key":"dddd"}}}`
	for rule, want := range map[string]string{
		"tool_input.env.*":    `{"key":5,"out":{"deep":{"key":"dddd"}},"tool_input":{"env":{"A":"[removed]","B":"[removed]"},"list":[{"key":"kkkk"},{"key":"llll","x":1}],"path":"p"}}`,
		"tool_input.env":      `{"key":5,"out":{"deep":{"key":"dddd"}},"tool_input":{"env":"[removed]","list":[{"key":"kkkk"},{"key":"llll","x":1}],"path":"p"}}`,
		"tool_input.list.key": `{"key":5,"out":{"deep":{"key":"dddd"}},"tool_input":{"env":{"A":"aaaa","B":["bbbb"]},"list":[{"key":"[removed]"},{"key":"[removed]","x":1}],"path":"p"}}`,
		"key":                 `{"key":"[removed]","out":{"deep":{"key":"dddd"}},"tool_input":{"env":{"A":"aaaa","B":["bbbb"]},"list":[{"key":"kkkk"},{"key":"llll","x":1}],"path":"p"}}`,
		"**.key":              `{"key":"[removed]","out":{"deep":{"key":"[removed]"}},"tool_input":{"env":{"A":"aaaa","B":["bbbb"]},"list":[{"key":"[removed]"},{"key":"[removed]","x":1}],"path":"p"}}`,
		"out.**.key":          `{"key":5,"out":{"deep":{"key":"[removed]"}},"tool_input":{"env":{"A":"aaaa","B":["bbbb"]},"list":[{"key":"kkkk"},{"key":"llll","x":1}],"path":"p"}}`,
		"*.env.[AC]|x":        `{"key":5,"out":{"deep":{"key":"dddd"}},"tool_input":{"env":{"A":"[removed]","B":["bbbb"]},"list":[{"key":"kkkk"},{"key":"llll","x":1}],"path":"p"}}`,
		"nothing.here":        doc,
	} {
		d := document(t, doc)
		rules(t, rule).Clean(d)
		if diff := cmp.Diff(document(t, want), d); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

func TestInvalidRulesAreErrors(t *testing.T) {
	for _, rule := range []string{"", "a.", ".a", "a..b", "**", "a.**", "a.[", strings.Repeat("a.", 40) + "a"} {
		if _, err := redact.Parse([]string{"good", rule}); err == nil || !strings.Contains(err.Error(), "write members with dots between them") {
			t.Errorf("%q: %v", rule, err)
		}
	}
	if _, err := redact.Parse(make([]string, 300)); err == nil {
		t.Error("300 rules were taken")
	}
	if !rules(t).Empty() || rules(t, "a").Empty() {
		t.Error("Empty does not distinguish no rules from some")
	}
}

// A value at a place that a rule names is nowhere in the document afterwards: not there,
// not in other texts, and not in names.
func TestASecretAtANamedPlaceIsNowhere(t *testing.T) {
	r := rules(t, "**.hidden", "tool_input.env.*")
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringMatching(`[A-Z0-9]{4,20}`).Draw(rt, "secret")
		around := rapid.StringMatching(`[a-z ./:-]{0,10}`)
		echo := around.Draw(rt, "before") + secret + around.Draw(rt, "after")
		var hidden any = secret
		switch rapid.IntRange(0, 2).Draw(rt, "form") {
		case 1:
			hidden = []any{"x", secret}
		case 2:
			hidden = map[string]any{"any": map[string]any{"thing": secret}}
		}
		doc := map[string]any{
			"tool_input":  map[string]any{"command": echo, "list": []any{map[string]any{"hidden": hidden}, echo}, echo: 1.0},
			"tool_output": map[string]any{"text": strings.Repeat("long ", rapid.IntRange(0, 4000).Draw(rt, "length")) + echo},
		}
		if rapid.Bool().Draw(rt, "env") {
			doc["tool_input"].(map[string]any)["env"] = map[string]any{"NAME": hidden}
		}
		removed := r.Clean(doc)
		data, err := schema.Marshal(doc)
		if err != nil {
			rt.Fatal(err)
		}
		if strings.Contains(string(data), secret) {
			rt.Errorf("%s is still in %s", secret, data)
		}
		if text := removed.Without("it failed: " + echo); strings.Contains(text, secret) {
			rt.Errorf("%s is still in %q", secret, text)
		}
	})
}

func TestShortTextsAreRemovedOnlyWhereTheyAreNamed(t *testing.T) {
	doc := document(t, `{"pin2":"12","other":"12 of 120"}`)
	if removed := rules(t, "pin2").Clean(doc); removed.Without("12") != "12" || fmt.Sprint(doc) != "map[other:12 of 120 pin2:[removed]]" {
		t.Errorf("%v, %v", removed, doc)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("tool_input.env.*", `{"tool_input":{"env":{"A":"secret-value"},"x":["secret-value"]}}`)
	f.Add("**.a|b.c", `{"a":{"c":[[{"c":"x"}]]},"b":null}`)
	f.Fuzz(func(t *testing.T, rule, text string) {
		r, err := redact.Parse([]string{rule})
		var doc map[string]any
		if err != nil || schema.Unmarshal([]byte(text), &doc) != nil {
			return
		}
		r.Clean(doc)
		if _, err := schema.Marshal(doc); err != nil {
			t.Errorf("%s by %q cannot be written any more: %v", text, rule, err)
		}
	})
}

package builtin

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

func TestRequireTextRetriesUntilTheTextIsThere(t *testing.T) {
	tags := map[string]any{"text": []any{"<answer>", "</answer>"}}
	lacks := `"<answer>" and "</answer>"`
	retried := func(lacks, guidance string) schema.Result {
		return schema.Retried("the answer lacks "+lacks, schema.Append(schema.RoleSystem, guidance))
	}
	for name, c := range map[string]struct {
		options map[string]any
		message string
		want    schema.Result
	}{
		"all of it is there":        {tags, `"so: <answer>42</answer>"`, schema.Result{}},
		"it may be an object":       {tags, `{"role":"assistant","content":"<answer>42</answer>"}`, schema.Result{}},
		"nothing of it is there":    {tags, `"42"`, retried(lacks, "The answer must contain "+lacks+". Write the complete answer again, with it.")},
		"an empty answer":           {tags, `{"content":""}`, retried(lacks, "The answer must contain "+lacks+". Write the complete answer again, with it.")},
		"one is missing":            {tags, `"<answer>42"`, retried(`"</answer>"`, `The answer must contain "</answer>". Write the complete answer again, with it.`)},
		"a message with tool calls": {tags, `{"content":"","tool_calls":[{"name":"search"}]}`, schema.Result{}},
		"calls of Chat Completions": {tags, `{"content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"search","arguments":"{}"}}]}`, schema.Result{}},
		"a pattern that matches":    {map[string]any{"pattern": `(?s)<answer>.+</answer>`}, `"<answer>\n4\n</answer>"`, schema.Result{}},
		"a pattern that does not": {map[string]any{"pattern": "^[0-9]+$", "guidance": "A number, please."}, `"four"`,
			retried(`something of the form "^[0-9]+$"`, "A number, please.")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []schema.EventType{schema.AfterLLMCall, schema.BeforeFinalResponse} {
				e := &schema.Event{HookType: kind, Message: jsontext.Value(c.message)}
				got := answer(t, "require_text", c.options, e)
				expect(t, c.want, got)
				if !kind.Permits(got.Decision) {
					t.Errorf("%s does not know %s", kind, got.Decision)
				}
			}
		})
	}
}

func TestRequireTextFailsOnUnreadableMessages(t *testing.T) {
	h, err := Catalog(nil)["require_text"](schema.Hook{Name: "test", Event: schema.AfterLLMCall, Options: map[string]any{"text": []any{"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{``, `null`, `5`, `{"content":[{"type":"text","text":"x"}]}`, `{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`, `{"content":null,"refusal":"x"}`} {
		if got, err := h.Handle(t.Context(), &schema.Event{HookType: schema.AfterLLMCall, Message: jsontext.Value(message)}); err == nil {
			t.Errorf("%s: the result is %+v", message, got)
		}
	}
}

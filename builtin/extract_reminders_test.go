package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

func extracted(t *testing.T, options map[string]any, output string) schema.Result {
	t.Helper()
	e := event(schema.PostToolUse)
	e.ToolOutput = jsontext.Value(output)
	return answer(t, "extract_reminders", options, e)
}

func TestRemindersAreFoundInEveryFormOfOutput(t *testing.T) {
	field := map[string]any{"field": "notes.system"}
	pattern := map[string]any{"pattern": `(?m)^TODO: (.*)$`}
	for name, c := range map[string]struct {
		options map[string]any
		output  string
		want    []string
	}{
		"no output":                      {nil, ``, nil},
		"null":                           {nil, `null`, nil},
		"no reminder":                    {nil, `"all is well"`, nil},
		"tags in text":                   {nil, `"a <system-reminder>\nlist is empty \n</system-reminder> b"`, []string{"list is empty"}},
		"several tags":                   {nil, `"<system-reminder>1</system-reminder><system-reminder>2</system-reminder>"`, []string{"1", "2"}},
		"an open tag":                    {nil, `"<system-reminder>1"`, nil},
		"empty tags":                     {nil, `"<system-reminder> </system-reminder>"`, nil},
		"tags in escapes":                {nil, `"\u003csystem-reminder\u003e1\u003c/system-reminder\u003e"`, []string{"1"}},
		"tags in an object":              {nil, `{"stdout":"<system-reminder>1</system-reminder>","exit":0}`, []string{"1"}},
		"tags in MCP content":            {nil, `[{"type":"text","text":"<system-reminder>1</system-reminder>"},{"type":"text","text":"x"}]`, []string{"1"}},
		"a member":                       {nil, `{"status":"ok","reminder":"save"}`, []string{"save"}},
		"both members":                   {nil, `{"reminder":"b","system_reminder":"a"}`, []string{"a", "b"}},
		"a list in a member":             {nil, `{"reminder":["a",1,"b"]}`, []string{"a", "b"}},
		"a member that is no text":       {nil, `{"reminder":5}`, nil},
		"a member of a member":           {nil, `{"result":{"reminder":"a"}}`, nil},
		"a member in JSON in text":       {nil, `"{\"reminder\":\"save\"}"`, []string{"save"}},
		"a member in JSON in content":    {nil, `[{"type":"text","text":" {\"reminder\":\"save\"} "}]`, []string{"save"}},
		"a member in a result":           {nil, `{"content":[{"type":"text","text":"{\"reminder\":\"save\"}"}],"structuredContent":{"reminder":"save"}}`, []string{"save"}},
		"tags in JSON in text":           {nil, `"{\"a\":\"<system-reminder>1</system-reminder>\"}"`, []string{"1"}},
		"text that only looks like JSON": {nil, `"{<system-reminder>1</system-reminder>"`, []string{"1"}},
		"the same reminder twice":        {nil, `["<system-reminder>1</system-reminder>","<system-reminder>1</system-reminder>"]`, []string{"1"}},
		"a path":                         {field, `{"notes":{"system":["a","b"]}}`, []string{"a", "b"}},
		"a path that ends early":         {field, `{"notes":"x"}`, nil},
		"a path instead of the default":  {field, `{"reminder":"x","a":"<system-reminder>1</system-reminder>"}`, nil},
		"a pattern":                      {pattern, `"x\nTODO: a\nTODO: b"`, []string{"a", "b"}},
		"a pattern, no default":          {pattern, `{"reminder":"x","a":"<system-reminder>1</system-reminder>"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			res := extracted(t, c.options, c.output)
			for _, i := range res.Injections {
				if i.Strategy != schema.UserMessage {
					t.Errorf("strategy %q", i.Strategy)
				}
				got = append(got, i.Content)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(res.HookErrors) > 0 {
				t.Errorf("found (-want +got):\n%s%v", diff, res.HookErrors)
			}
		})
	}
}

func TestTheNumberOfRemindersIsLimited(t *testing.T) {
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "<system-reminder>%d</system-reminder>", i)
	}
	long := "<system-reminder>" + strings.Repeat("x", maxText+1) + "</system-reminder><system-reminder>short</system-reminder>"
	for name, c := range map[string]struct {
		output string
		want   int
	}{"many": {many.String(), maxReminders}, "long": {long, 1}} {
		res := extracted(t, nil, `"`+c.output+`"`)
		if len(res.Injections) != c.want {
			t.Errorf("%s: %d reminders", name, len(res.Injections))
		}
		if len(res.HookErrors) != 1 || !strings.Contains(res.HookErrors[0], "dropped at least") {
			t.Errorf("%s: no error reports the dropped reminders: %v", name, res.HookErrors)
		}
	}
}

func TestDeepOutputsAreSearchedUpToALimit(t *testing.T) {
	text := `{"reminder":"deep"}`
	for range maxNesting + 2 {
		b, err := schema.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	expect(t, schema.Result{}, extracted(t, nil, text))
	expect(t, schema.Result{}, extracted(t, nil, strings.Repeat("[", 5000)+`"reminder"`+strings.Repeat("]", 5000)))
}

func FuzzExtractReminders(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"{\"reminder\":[\"a\"]}"}]}`)
	f.Add(`"<system-reminder>a</system-reminder>"`)
	h, err := Catalog(nil)["extract_reminders"](schema.Hook{Handler: "extract_reminders", Event: schema.PostToolUse})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, output string) {
		e := &schema.Event{HookType: schema.PostToolUse, ToolOutput: jsontext.Value(output)}
		res, err := h.Handle(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, i := range res.Injections {
			size += len(i.Content)
			if i.Content == "" {
				t.Error("an empty reminder")
			}
		}
		if len(res.Injections) > maxReminders || size > maxText {
			t.Errorf("%d reminders, %d bytes", len(res.Injections), size)
		}
	})
}

package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// drawn is a conversation, and its texts as a model should read them: in the order of
// turns, with results at their calls.
type drawn struct {
	messages []schema.Message
	texts    []string
	n        int
}

// mark draws a unique text.
func (d *drawn) mark(rt *rapid.T) string {
	d.n++
	return fmt.Sprintf("«%d %s»", d.n, rapid.StringMatching(`([a-z|"\\ <>-]|\n){0,8}`).Draw(rt, "text"))
}

func drawConversation(rt *rapid.T) *drawn {
	d := &drawn{}
	d.say(rt, schema.RoleUser)
	for range rapid.IntRange(0, 6).Draw(rt, "turns") {
		role := rapid.SampledFrom([]string{schema.RoleSystem, schema.RoleUser, schema.RoleAssistant, "calls", "blank"}).Draw(rt, "role")
		switch role {
		case "calls":
			d.call(rt)
		case "blank":
			d.messages = append(d.messages, schema.Message{Role: rapid.SampledFrom([]string{schema.RoleSystem, schema.RoleUser, schema.RoleAssistant}).Draw(rt, "whose"),
				Content: rapid.SampledFrom([]string{"", " \n"}).Draw(rt, "blank")})
		default:
			d.say(rt, role)
		}
	}
	return d
}

func (d *drawn) say(rt *rapid.T, role string) {
	m := schema.Message{Role: role, Content: d.mark(rt)}
	d.messages, d.texts = append(d.messages, m), append(d.texts, m.Content)
}

// call adds calls, and their results in any order among other messages.
func (d *drawn) call(rt *rapid.T) {
	m := schema.Message{Role: schema.RoleAssistant, Content: d.mark(rt)}
	d.texts = append(d.texts, m.Content)
	var results []schema.Message
	for i := range rapid.IntRange(1, 4).Draw(rt, "calls") {
		id := rapid.SampledFrom([]string{fmt.Sprintf("c%d_%d", len(d.messages), i), fmt.Sprintf("same.%d", i)}).Draw(rt, "id")
		input, err := schema.Marshal(map[string]string{"command": d.mark(rt)})
		if err != nil {
			rt.Fatal(err)
		}
		m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: id, Name: "Bash", Input: input})
		d.texts = append(d.texts, marksIn(jsonString(rt, input))...)
		o := &schema.ToolOutcome{ID: id, Name: "Bash"}
		text := jsontext.Value(must(schema.Marshal(d.mark(rt)))(rt))
		switch rapid.IntRange(0, 2).Draw(rt, "outcome") {
		case 0:
			o.Output = text
		case 1:
			o.Error = jsonString(rt, text)
		case 2:
			o.Output = jsontext.Value(`{"a":["b"]}`)
		}
		for range rapid.IntRange(0, 2).Draw(rt, "notes") {
			o.Notes = append(o.Notes, d.mark(rt))
		}
		results = append(results, schema.Message{Role: schema.RoleTool, Result: o})
	}
	d.messages = append(d.messages, m)
	for _, r := range results {
		for _, s := range []string{(jsonString(rt, r.Result.Output)), r.Result.Error, strings.Join(r.Result.Notes, "")} {
			d.texts = append(d.texts, marksIn(s)...)
		}
	}
	later := &drawn{n: d.n}
	if rapid.Bool().Draw(rt, "a message in between") {
		later.say(rt, rapid.SampledFrom([]string{schema.RoleSystem, schema.RoleUser}).Draw(rt, "who"))
	}
	results = rapid.Permutation(results).Draw(rt, "order")
	at := rapid.IntRange(0, len(results)).Draw(rt, "when")
	d.messages = append(d.messages, slices.Insert(results, at, later.messages...)...)
	d.texts, d.n = append(d.texts, later.texts...), later.n
}

func must(data []byte, err error) func(rt *rapid.T) []byte {
	return func(rt *rapid.T) []byte {
		if err != nil {
			rt.Fatal(err)
		}
		return data
	}
}

// jsonString joins all strings of a value.
func jsonString(rt *rapid.T, v jsontext.Value) string {
	return strings.Join(stringsOf(rt, v), "")
}

// marksIn returns the texts between guillemets.
func marksIn(s string) (all []string) {
	for {
		_, rest, found := strings.Cut(s, "«")
		if !found {
			return all
		}
		text, rest, _ := strings.Cut(rest, "»")
		all, s = append(all, "«"+text+"»"), rest
	}
}

// Every text arrives whole, once and in order, in a request that the API accepts.
func TestEveryTextOfAConversationArrivesOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := drawConversation(rt)
		f := rapid.SampledFrom(render.Formats()).Draw(rt, "format")
		r, err := render.Conversation(f, d.messages, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if err := illegal(f, r); err != nil {
			rt.Errorf("%s refuses it: %v", f, err)
		}
		var got []string
		for _, part := range append(append([]jsontext.Value{r.System, r.SystemInstruction}, r.Messages...), r.Contents...) {
			got = append(got, marks(rt, render.Messages{Messages: []jsontext.Value{part}})...)
		}
		want := slices.Clone(d.texts)
		if f == render.Anthropic { // in this format, notes follow all results
			slices.Sort(want)
			slices.Sort(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("%s: the texts differ (-want +got):\n%s", f, diff)
		}
	})
}

// A model's message is sent back unchanged, except for the changes of hooks.
func TestMessagesOfTheModelAreSentBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom([]render.Format{render.Anthropic, render.OpenAI, render.Gemini}).Draw(rt, "format")
		m, err := render.Read(f, drawAnswer(rt, f))
		if err != nil {
			rt.Fatal(err)
		}
		changed := rapid.Bool().Draw(rt, "a hook changed it")
		if changed {
			m.Content = "«the hook's»"
		}
		before := rapid.SampledFrom(render.Formats()).Draw(rt, "of")
		all := []schema.Message{{Role: schema.RoleUser, Content: "go"}, m}
		for _, c := range m.ToolCalls {
			all = append(all, schema.Message{Role: schema.RoleTool, Result: &schema.ToolOutcome{ID: c.ID, Name: c.Name, Output: jsontext.Value(`""`)}})
		}
		all = append(all, schema.Message{Role: schema.RoleUser, Content: "go on"})
		r, err := render.Conversation(before, all, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if err := illegal(before, r); err != nil {
			rt.Errorf("%s refuses the message of %s: %v", before, f, err)
		}
		text := ""
		for _, part := range append(r.Messages, r.Contents...) {
			text += string(part)
		}
		for sign, want := range map[string]bool{"c2ln": f == before && !strings.HasPrefix(string(f), "openai") && (m.Content != "" || len(m.ToolCalls) > 0),
			"«the hook's»": changed, "«the model's»": !changed && strings.Contains(m.Content, "«the model's»")} {
			if strings.Contains(text, sign) != want {
				rt.Errorf("%s to %s: %s is there: %v\n%s", f, before, sign, !want, text)
			}
		}
	})
}

// drawAnswer draws an answer with thoughts, texts and calls, of which at least one is
// there.
func drawAnswer(rt *rapid.T, f render.Format) jsontext.Value {
	var blocks, calls []string
	spoken := rapid.Bool().Draw(rt, "spoken")
	n := rapid.IntRange(0, 2).Draw(rt, "calls")
	switch f {
	case render.Anthropic:
		blocks = append(blocks, `{"type":"thinking","thinking":"hm","signature":"c2ln"}`)
		if spoken {
			blocks = append(blocks, `{"type":"text","text":"«the model's»"}`)
		}
		for i := range n {
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"Bash","input":{"n":%d}}`, i, i))
		}
		return jsontext.Value(`{"type":"message","content":[` + strings.Join(blocks, ",") + `],"stop_reason":"end_turn"}`)
	case render.Gemini:
		blocks = append(blocks, `{"text":"hm","thought":true,"thoughtSignature":"c2ln"}`)
		if spoken {
			blocks = append(blocks, `{"text":"«the model's»"}`)
		}
		for i := range n {
			blocks = append(blocks, fmt.Sprintf(`{"functionCall":{"name":"Bash","args":{"n":%d}}}`, i))
		}
		return jsontext.Value(`{"candidates":[{"content":{"parts":[` + strings.Join(blocks, ",") + `]},"finishReason":"STOP"}]}`)
	}
	content := "null"
	if spoken {
		content = `"«the model's»"`
	}
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"id":"t%d","type":"function","function":{"name":"Bash","arguments":"{\"n\":%d}"}}`, i, i))
	}
	list := ""
	if n > 0 {
		list = `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return jsontext.Value(`{"choices":[{"message":{"role":"assistant","content":` + content + list + `},"finish_reason":"stop"}]}`)
}

// Any answer is a message that can be sent back, or an error.
func FuzzRead(f *testing.F) {
	for _, file := range archive(f, "answers.txtar") {
		f.Add(file.Data)
	}
	f.Add([]byte(`{"choices":[{"message":{"role":"assistant","content":[1],"tool_calls":[{"function":{"name":"a","arguments":[]}},{"id":"","function":{"name":"a"}}]}}]}`))
	f.Add([]byte(`{"choices":[{"message":{"role":"assistant","content":"a","refusal":[]}}]}`))
	f.Add([]byte(`{"type":"message","content":[{"type":"new","id":[]},{"type":"tool_use","name":"0"}]}`))
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","id":"a b","name":"x","input":[]},{"type":"tool_use","id":"a b","name":"x"}]}`))
	f.Add([]byte(`{"type":"message","content":[{"type":[]}]}`))
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","id":"0","name":"0"},{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"1","input":{}}]}`))
	f.Fuzz(func(t *testing.T, response []byte) {
		for _, format := range render.Formats() {
			m, err := render.Read(format, response)
			if err != nil {
				continue
			}
			all := []schema.Message{{Role: schema.RoleUser, Content: "go"}, m}
			for _, c := range m.ToolCalls {
				all = append(all, schema.Message{Role: schema.RoleTool, Result: &schema.ToolOutcome{ID: c.ID, Name: c.Name, Output: jsontext.Value(`1`)}})
			}
			for _, back := range render.Formats() {
				r, err := render.Conversation(back, all, nil)
				if err != nil {
					t.Fatalf("%s to %s: %v", format, back, err)
				}
				if format == back || back == render.Anthropic || m.Native == nil {
					if err := illegal(back, r); err != nil {
						t.Errorf("%s to %s: %v", format, back, err)
					}
				}
			}
		}
	})
}

package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// parseShort reads a conversation in short form: a letter for each message: s, u, a, and
// for calls their number, t for a result; its text follows a colon.
func parseShort(short string) (messages []schema.Message) {
	for word := range strings.FieldsSeq(short) {
		letter, text, _ := strings.Cut(word, ":")
		switch letter {
		case "s":
			messages = append(messages, schema.Message{Role: schema.RoleSystem, Content: text})
		case "u":
			messages = append(messages, schema.Message{Role: schema.RoleUser, Content: text})
		case "a":
			messages = append(messages, schema.AssistantText(text))
		case "t":
			output, _ := jsontext.AppendQuote(nil, text)
			messages = append(messages, schema.Message{Role: schema.RoleTool, Result: &schema.ToolOutcome{Output: output}})
		default:
			messages = append(messages, schema.Message{Role: schema.RoleAssistant, Content: text, ToolCalls: make([]schema.ToolCall, letter[0]-'0')})
		}
	}
	return messages
}

func short(messages []schema.Message) string {
	var words []string
	for _, m := range messages {
		word := m.Role[:1]
		text := m.Content
		if m.Result != nil {
			_ = schema.Unmarshal(m.Result.Output, &text)
		}
		if n := len(m.ToolCalls); n > 0 {
			word = fmt.Sprint(n)
		}
		if text != "" {
			word += ":" + text
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestMessagesThatMatchAllMembersAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		talk string
		drop schema.DropMessages
		want string
	}{
		"the first ones, but not the system's":         {"s u:1 a:2 u:3", schema.DropMessages{First: 2}, "s u:3"},
		"the last ones":                                {"s u:1 a:2 u:3", schema.DropMessages{Last: 1}, "s u:1 a:2"},
		"more than there are":                          {"s u:1 a:2", schema.DropMessages{Last: 9}, "s"},
		"the system's, which the role names":           {"s:1 u s:2", schema.DropMessages{Role: schema.RoleSystem, Last: 1}, "s:1 u"},
		"a role":                                       {"u:1 a:2 u:3", schema.DropMessages{Role: schema.RoleUser}, "a:2"},
		"what contains a text, also in a result":       {"u:ab 1 t:cab u:c a:b", schema.DropMessages{Containing: "ab"}, "u:c a:b"},
		"the first of those that contain a text":       {"u:ab u:x u:ab", schema.DropMessages{Containing: "ab", First: 1}, "u:x u:ab"},
		"a call takes its results along":               {"u 2:call t t u:next", schema.DropMessages{Containing: "call"}, "u u:next"},
		"a result takes its call along":                {"u 2 t:x t:y a", schema.DropMessages{Containing: "x"}, "u a"},
		"a user's message between results stays":       {"1:go u:mind t a", schema.DropMessages{Containing: "go"}, "u:mind a"},
		"calls without all their results stay":         {"u:go 2:go t:go u:go", schema.DropMessages{Containing: "go"}, "2:go t:go"},
		"of two turns only the one that is picked":     {"1:x t 1:y t", schema.DropMessages{Containing: "y"}, "1:x t"},
		"results count by themselves where roles pick": {"1 t:1 1 t:2", schema.DropMessages{Role: schema.RoleTool, Last: 1}, "1 t:1"},
	} {
		t.Run(name, func(t *testing.T) {
			before := parseShort(c.talk)
			if got := short(c.drop.Apply(before)); got != c.want {
				t.Errorf("%q became %q, not %q", c.talk, got, c.want)
			}
			if diff := cmp.Diff(parseShort(c.talk), before); diff != "" {
				t.Errorf("what was given was changed: %s", diff)
			}
		})
	}
}

// For random drops, no call loses its results and no result its call, system messages
// stay unless they are asked for, the order stays, and all matching messages are removed,
// except in open turns.
func TestDroppingKeepsCallsAndResultsTogether(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		messages, turn := drawTalk(rt)
		d := schema.DropMessages{
			Role:       rapid.SampledFrom([]string{"", "", schema.RoleUser, schema.RoleAssistant, schema.RoleTool, schema.RoleSystem}).Draw(rt, "role"),
			Containing: rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "containing"),
		}
		if n := rapid.IntRange(0, 4).Draw(rt, "count"); rapid.Bool().Draw(rt, "from the front") {
			d.First = n
		} else {
			d.Last = n
		}
		picked := d.Picks(messages)
		whole := map[int]bool{}
		for i, p := range picked {
			if p && messages[i].Role == schema.RoleSystem && d.Role != schema.RoleSystem {
				rt.Errorf("message %d is the system's", i)
			}
			if others, seen := whole[turn[i]]; turn[i] > 0 && seen && others != p {
				rt.Errorf("of turn %d only some messages are dropped: %v of %q", turn[i], picked, short(messages))
			}
			whole[turn[i]] = p
			if d.First+d.Last == 0 && turn[i] == 0 && p != (applies(&d, &messages[i])) {
				rt.Errorf("message %d of %q: dropped is %v", i, short(messages), p)
			}
		}
		if n := len(d.Apply(d.Apply(messages))); d.First+d.Last == 0 && n != len(d.Apply(messages)) {
			rt.Errorf("dropping twice drops more: %d", n)
		}
	})
}

// applies is the rule for a message without a turn, implemented a second time.
func applies(d *schema.DropMessages, m *schema.Message) bool {
	if d.Role == "" && m.Role == schema.RoleSystem {
		return false
	}
	return (d.Role == "" || d.Role == m.Role) && strings.Contains(m.Content, d.Containing)
}

// drawTalk draws a conversation as loops make them, and the turn of each message; 0 means
// no turn.
func drawTalk(rt *rapid.T) (messages []schema.Message, turn []int) {
	text := rapid.SampledFrom([]string{"", "x", "y", "xy"})
	turns := 0
	for range rapid.IntRange(0, 12).Draw(rt, "messages") {
		role := rapid.SampledFrom([]string{schema.RoleSystem, schema.RoleUser, schema.RoleAssistant, schema.RoleTool}).Draw(rt, "role")
		if role != schema.RoleTool {
			messages, turn = append(messages, schema.Message{Role: role, Content: text.Draw(rt, "text")}), append(turn, 0)
			continue
		}
		turns++
		n := rapid.IntRange(1, 3).Draw(rt, "calls")
		messages = append(messages, schema.Message{Role: schema.RoleAssistant, Content: text.Draw(rt, "text"), ToolCalls: make([]schema.ToolCall, n)})
		turn = append(turn, turns)
		for range n {
			output, _ := jsontext.AppendQuote(nil, text.Draw(rt, "output"))
			messages = append(messages, schema.Message{Role: schema.RoleTool, Result: &schema.ToolOutcome{Output: output}})
			turn = append(turn, turns)
		}
	}
	return messages, turn
}

package builtin

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestCutTextIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"no bound":                {"long text", 0, "long text"},
		"just within":             {"äöü", 3, "äöü"},
		"beyond":                  {"abcd", 3, "abc… [cut: the first 3 of 4 characters]"},
		"characters, not bytes":   {"äöüß", 3, "äöü… [cut: the first 3 of 4 characters]"},
		"bytes that are not text": {"ab\xff\xffc", 3, "ab\xff… [cut: the first 3 of 5 characters]"},
	} {
		if got := cut(c.text, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCutReturnsThePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "limit")
		got := cut(text, limit)
		if utf8.RuneCountInString(text) <= limit {
			if got != text {
				t.Errorf("%q became %q", text, got)
			}
			return
		}
		kept, _, ok := strings.Cut(got, "… [cut: ")
		if !ok || !strings.HasPrefix(text, kept) || utf8.RuneCountInString(kept) > limit {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// A text that is too large to share a text with others is fetched by the client, after a
// line that announces it.
func TestATextInTheObjectStoreFollowsItsLead(t *testing.T) {
	far := &schema.Object{Digest: "sha256-00", Size: 20 << 20}
	items := []*schema.Item{
		{Sequence: 1, Source: "human", Content: "a"},
		{Sequence: 2, Source: "human", Strategy: schema.UserMessage, Object: far},
		{Sequence: 3, Source: "human", Content: "b", Object: far},
	}
	got := stage[delivery](t, schema.HumanInput, nil).Render(&schema.Receiver{}, items)
	want := schema.Handout{Injections: []schema.Injection{
		{Content: "[Human Input]: a", Strategy: schema.ToolResult, Source: "human", Sequence: 1},
		{Content: "[Human Input]: (20 MiB; the text follows)", Strategy: schema.UserMessage, Source: "human", Sequence: 2},
		{Strategy: schema.UserMessage, Source: "human", Sequence: 2, Object: far},
		{Content: "[Human Input]: b", Strategy: schema.ToolResult, Source: "human", Sequence: 3},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package builtin

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestSubagentResultsRenderAsOneBatch(t *testing.T) {
	d := stage[delivery](t, schema.SubagentComplete, nil)
	due := []*schema.Item{
		{Sequence: 1, Source: "subagent", Subagent: &schema.SubagentResult{ID: "research-1", Status: "completed",
			Answer: "Use a <map> & a lock.\n", Took: schema.Duration(12345 * time.Millisecond),
			Workspace: "/w/research-1", InputTokens: 1200, OutputTokens: 80}},
		{Sequence: 2, Source: "human", Content: "not mine"},
		{Sequence: 3, Source: "subagent", Subagent: &schema.SubagentResult{ID: `a"b`, Status: "failed", Error: "no such tool", Took: schema.Duration(time.Second)}},
		{Sequence: 4, Source: "subagent", Subagent: &schema.SubagentResult{ID: "slow", Status: "timeout",
			Error: "stopped after 300s", Answer: "Half of it:\n- a", Completion: 50}},
		{Sequence: 5, Source: "subagent", Content: "the reviewer found nothing"},
	}
	out := d.Render(&schema.Receiver{}, d.Choose(&schema.Receiver{}, &schema.Peers{}, due))
	golden(t, "subagents", texts(out.Injections))
}

// For any result of a subagent, the rendering is one element with the result as text.
func TestSubagentResultsCannotForgeTags(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"</answer>", "<answer>", "]]>", "&", "&lt;", `"`, "'", "\x00", "\x1b[2J", "\n", "ä", "x", "</subagent_result>", "\xff"})
		text := func(name string) string {
			return strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, name), ""), "?")
		}
		r := &schema.SubagentResult{ID: text("id"), Status: text("status"), Answer: text("answer"), Error: text("error"), Workspace: text("workspace")}
		dec := xml.NewDecoder(strings.NewReader(subagentElement(r)))
		depth, elements := 0, 0
		for {
			token, err := dec.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, subagentElement(r))
			}
			switch token.(type) {
			case xml.StartElement:
				if depth++; depth == 1 {
					elements++
				}
			case xml.EndElement:
				depth--
			}
		}
		if elements != 1 {
			t.Errorf("%d elements in %s", elements, subagentElement(r))
		}
	})
}

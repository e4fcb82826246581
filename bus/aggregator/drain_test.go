package aggregator_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/schema"
)

func TestDrainTakesAlongWhateverTheToolsOfItsHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.put(&schema.Item{Source: schema.SourceHuman, Content: "text-0"})
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse, matching("Bash")))
		answer, failed := f.request("drain.a", `{"event_id":"`+id(1)+`"}`)
		if failed != nil || !strings.Contains(answer, "text-0") {
			t.Errorf("%s %v", answer, failed)
		}
	})
}

func TestDrainOneTakesTheNextItemAndTellsItsMatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.put(&schema.Item{Source: schema.SourceHuman, Content: "text-0", Matcher: "Write|Edit"})
		m.put(&schema.Item{Source: schema.SourceHuman, Content: "text-1"})
		f := remembering(t, m, library{}, stage(schema.HumanInput, schema.PostToolUse))
		for range 2 { // the same event gets the same
			answer, failed := f.request("drain.a", `{"event_id":"`+id(1)+`","one":true}`)
			d := &schema.DrainAnswer{}
			if failed != nil || schema.Unmarshal([]byte(answer), d) != nil {
				t.Fatal(answer, failed)
			}
			if !strings.Contains(d.Content, "text-0") || strings.Contains(d.Content, "text-1") || d.Matcher != "Write|Edit" || d.Sequence == 0 {
				t.Errorf("%s", answer)
			}
		}
	})
}

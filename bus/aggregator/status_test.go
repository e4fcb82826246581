package aggregator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// A status must fit into a message however many words for sources there are.
func TestAStatusTellsNotEachOfVeryManySourcesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{})
		m.put(human("hello"))
		for i := range 200_000 {
			m.put(&schema.Item{Source: fmt.Sprintf("%s-%d", strings.Repeat("word", 12), i), Content: "x"})
		}
		want := map[string]int{schema.SourceHuman: 1, "other": 200_000}
		if diff := cmp.Diff(want, f.status("").Pending); diff != "" {
			t.Error(diff[:min(len(diff), 1000)])
		}
	})
}

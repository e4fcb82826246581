package audit

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

func TestItemsAreFoundInWhatWasMadeOfThem(t *testing.T) {
	one := Item{Agent: "agent-001", Source: schema.SourceHuman, Producer: "producer-0-human", Number: 7}
	two := Item{Agent: "agent-001", Source: schema.SourceBackground, Producer: "producer-1-background", Number: 8}
	r := two.request()
	texts := []schema.Injection{
		{Content: "\n[Human Input]: " + one.request().Content + "\n" + one.request().Content},
		{Content: "=====\n- [" + r.Background.ID + "]\n  Result: " + r.Background.Result},
		{Content: "nothing of ours: item=a/b/c/x; item=a/b/1;"},
	}
	if d := gocmp.Diff([]Item{one, one, two}, newFinder().items(texts)); d != "" {
		t.Error(d)
	}
	if r.Strategy != schema.UserMessage || one.request().Strategy != "" || r.Content != "" {
		t.Errorf("the requests are %+v and %+v", one.request(), r)
	}
}

// all returns the items of one producer's life that are not in done.
func all(c ProducerConfig, done map[Item]bool) [][]Item {
	var parts [][]Item
	for w := range writers {
		parts = append(parts, c.todo(w, done))
	}
	return parts
}

func TestAProducerSendsEachItemOnce(t *testing.T) {
	c := ProducerConfig{Producer: "p", Agents: []string{"ann", "bob", "cid", "dan", "eve"}, Each: 91}
	seen := map[Item]int{}
	lanes := map[stream]int{} // the writer of each lane
	late := 0
	for w, part := range all(c, nil) {
		last := map[stream]uint64{}
		for _, i := range part {
			seen[i]++
			s := stream{i.Agent, i.Source}
			if before, ok := lanes[s]; ok && before != w {
				t.Fatalf("%v is sent by two at the same time", s)
			}
			lanes[s] = w
			if i.Number < last[s] {
				late++
			}
			last[s] = i.Number
		}
	}
	if want := len(c.Agents) * len(Sources()) * c.Each; len(seen) != want {
		t.Errorf("%d items are sent, want %d", len(seen), want)
	}
	for i, n := range seen {
		if n != 1 || i.Number < 1 || i.Number > uint64(c.Each) {
			t.Errorf("%v is sent %d times", i, n)
		}
	}
	if late == 0 || late > len(seen)/swapOneIn {
		t.Errorf("%d of %d items come late", late, len(seen))
	}
}

func TestAProducerGoesOnWhereItWasKilled(t *testing.T) {
	c := ProducerConfig{Producer: "p", Agents: []string{"ann", "bob"}, Each: 40}
	whole := slices.Concat(all(c, nil)...)
	done := map[Item]bool{}
	for _, i := range whole[:len(whole)/2] {
		done[i] = true
	}
	rest := slices.Concat(all(c, done)...)
	order := func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Number, b.Number))
	}
	together := slices.SortedFunc(slices.Values(append(rest, slices.Collect(maps.Keys(done))...)), order)
	slices.SortFunc(whole, order)
	if d := gocmp.Diff(whole, together); d != "" {
		t.Error(d)
	}
}

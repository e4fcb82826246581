package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// told returns item n of the source human for ann.
func told(n uint64) Item { return Item{Agent: "ann", Source: "human", Producer: "p", Number: n} }

// receipt returns the entry that item n was accepted as sequence seq.
func receipt(n, seq uint64) Entry {
	return Entry{By: "producer", At: 1, Receipt: &Receipt{Item: told(n), Sequence: seq}}
}

// again returns the entry that item n had been accepted before, as sequence seq.
func again(n, seq uint64) Entry {
	e := receipt(n, seq)
	e.Receipt.Duplicate = true
	return e
}

// handed returns the entry that the shim by handed over the items under an event.
func handed(by, event string, numbers ...uint64) Entry {
	h := &Handed{Agent: "ann", Event: event}
	for _, n := range numbers {
		h.Items = append(h.Items, told(n))
	}
	return Entry{By: by, At: 2, Handed: h}
}

// byAnother returns e with an item of another producer.
func byAnother(e Entry) Entry {
	if e.Receipt != nil {
		e.Receipt.Item.Producer = "q"
		return e
	}
	for i := range e.Handed.Items {
		e.Handed.Items[i].Producer = "q"
	}
	return e
}

func acked(by string, events ...string) Entry { return Entry{By: by, Acked: events} }

func audited(entries ...Entry) *Audit {
	a := New()
	for _, e := range entries {
		a.Take(e)
	}
	return a
}

// found returns the violations, with their counts.
func found(f Findings) string {
	var all []string
	for _, v := range []struct {
		name string
		Violation
		early bool
	}{
		{"lost", f.Lost, f.Early}, {"unknown", f.Unknown, f.Early}, {"duplicated", f.Duplicated, false}, {"disordered", f.Disordered, false},
		{"misdelivered", f.Misdelivered, false}, {"contradictory receipts", f.Contradictory, false}, {"refused", f.Refused, false}, {"excused", f.Excused, false},
	} {
		if v.Wrong > 0 && !v.early {
			all = append(all, fmt.Sprintf("%d %s", v.Wrong, v.name))
		}
	}
	return strings.Join(all, ", ")
}

func TestTheAudit(t *testing.T) {
	misled := handed("s1", "e1", 1)
	misled.Handed.Agent = "bob"
	refused := receipt(1, 0)
	refused.Receipt.Refused = "too old"
	other := handed("s1", "e1", 2)
	other.Handed.Items[0].Source = "ops"
	otherReceipt := receipt(2, 9)
	otherReceipt.Receipt.Item.Source = "ops"
	for name, c := range map[string]struct {
		entries []Entry
		killed  []string
		want    string
	}{
		"what was handed over once, in order, is right": {
			entries: []Entry{receipt(1, 5), receipt(2, 6), handed("s1", "e1", 1, 2), acked("s1", "e1")},
		},
		"an item that never came is lost": {
			entries: []Entry{receipt(1, 5), receipt(2, 6), handed("s1", "e1", 1)},
			want:    "1 lost",
		},
		"an item that came under two events came twice": {
			entries: []Entry{receipt(1, 5), handed("s1", "e1", 1), handed("s1", "e2", 1)},
			want:    "1 duplicated",
		},
		"a shim that was killed before the acknowledgement is an excuse": {
			entries: []Entry{receipt(1, 5), handed("s1", "e1", 1), handed("s2", "e2", 1)},
			killed:  []string{"s1"},
			want:    "1 excused",
		},
		"none if it knew of the acknowledgement": {
			entries: []Entry{receipt(1, 5), handed("s1", "e1", 1), acked("s1", "e1"), handed("s2", "e2", 1)},
			killed:  []string{"s1"},
			want:    "1 duplicated",
		},
		"none if another one was killed": {
			entries: []Entry{receipt(1, 5), handed("s1", "e1", 1), handed("s2", "e2", 1)},
			killed:  []string{"s2", "broker"},
			want:    "1 duplicated",
		},
		"an excuse is good for one time": {
			entries: []Entry{receipt(1, 5), handed("s1", "e1", 1), handed("s2", "e2", 1), handed("s2", "e3", 1)},
			killed:  []string{"s1"},
			want:    "1 duplicated, 1 excused",
		},
		"the killed shim's own second time is no excuse": {
			entries: []Entry{receipt(1, 5), handed("s1", "e1", 1), handed("s1", "e2", 1)},
			killed:  []string{"s1"},
			want:    "1 duplicated",
		},
		"a later item that came first is out of order": {
			entries: []Entry{receipt(1, 5), receipt(2, 6), handed("s1", "e1", 2), handed("s1", "e2", 1)},
			want:    "1 disordered",
		},
		"so it is within one verdict": {
			entries: []Entry{receipt(1, 5), receipt(2, 6), handed("s1", "e1", 2, 1)},
			want:    "1 disordered",
		},
		"it is also if the fabric says that it was accepted later": {
			entries: []Entry{receipt(1, 6), receipt(2, 5), handed("s1", "e1", 2), handed("s1", "e2", 1)},
			want:    "1 disordered",
		},
		"and if it does not say where anything was": {
			entries: []Entry{receipt(1, 0), receipt(2, 0), receipt(3, 0), handed("s1", "e1", 2, 3), handed("s1", "e2", 1)},
			want:    "1 disordered",
		},
		"among the items of two producers the sequences decide": {
			entries: []Entry{receipt(1, 6), byAnother(receipt(1, 5)), handed("s1", "e1", 1), byAnother(handed("s1", "e2", 1))},
			want:    "1 disordered",
		},
		"which may have had their receipts in any order": {
			entries: []Entry{receipt(1, 6), byAnother(receipt(1, 5)), byAnother(handed("s1", "e2", 1)), handed("s1", "e1", 1)},
		},
		"the order is that of the receipts, not of the numbers": {
			entries: []Entry{receipt(2, 5), receipt(1, 6), handed("s1", "e1", 2, 1)},
		},
		"other sources have an order of their own": {
			entries: []Entry{otherReceipt, receipt(1, 5), other, handed("s1", "e2", 1)},
		},
		"a repetition does not disturb the order": {
			entries: []Entry{receipt(1, 5), receipt(2, 6), handed("s1", "e1", 1, 2), handed("s2", "e2", 1, 2)},
			killed:  []string{"s1"},
			want:    "2 excused",
		},
		"an item that nobody sent is unknown": {
			entries: []Entry{handed("s1", "e1", 7)},
			want:    "1 unknown",
		},
		"an item of somebody else is misdelivered": {
			entries: []Entry{receipt(1, 5), misled},
			want:    "1 misdelivered",
		},
		"a repeat with the first one's sequence is right": {
			entries: []Entry{receipt(1, 5), again(1, 5), again(1, 0), handed("s1", "e1", 1)},
		},
		"a repeat with another sequence contradicts": {
			entries: []Entry{receipt(1, 5), again(1, 6), handed("s1", "e1", 1)},
			want:    "1 contradictory receipts",
		},
		"a repeat that was taken for new contradicts": {
			entries: []Entry{receipt(1, 5), receipt(1, 6), handed("s1", "e1", 1)},
			want:    "1 contradictory receipts",
		},
		"a refusal is one": {
			entries: []Entry{refused},
			want:    "1 refused",
		},
		"a receipt may come after the handing over": {
			entries: []Entry{handed("s1", "e1", 1), receipt(1, 5)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			killed := map[string]bool{}
			for _, k := range c.killed {
				killed[k] = true
			}
			f := audited(c.entries...).Judge(killed)
			if got := found(f); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			ok := !strings.ContainsAny(strings.ReplaceAll(c.want, "excused", ""), "abcdefghijklmnopqrstuvwxyz")
			if broken := slices.ContainsFunc(f.Checks(0), func(c report.Check) bool { return !c.OK() }); broken == ok {
				t.Errorf("the checks are %+v", f.Checks(0))
			}
		})
	}
}

func TestTheAuditCounts(t *testing.T) {
	a := audited(receipt(1, 5), receipt(2, 6), again(2, 6), again(3, 7), handed("s1", "e1", 1, 2))
	if a.Open() != 1 || a.Accepted() != 3 {
		t.Errorf("%d of %d are open", a.Open(), a.Accepted())
	}
	f := a.Judge(nil)
	if f.Accepted != 3 || f.Delivered != 2 {
		t.Errorf("the counts are %+v", f)
	}
	if w := a.Waits(); len(w) != 2 || w[0] != 1 {
		t.Errorf("the waits are %v", w)
	}
}

// TestAnyLossIsFound takes one handover out of a perfect history.
func TestAnyLossIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 40).Draw(t, "items")
		gone := rapid.Uint64Range(1, n).Draw(t, "gone")
		twice := rapid.Uint64Range(1, n).Draw(t, "twice")
		var entries []Entry
		for i := uint64(1); i <= n; i++ {
			entries = append(entries, receipt(i, i+100))
			if i != gone {
				entries = append(entries, handed("s", fmt.Sprint(i), i))
			}
		}
		want := "1 lost"
		if twice != gone {
			entries = append(entries, handed("s", "again", twice))
			want = "1 lost, 1 duplicated"
		}
		if got := found(audited(entries...).Judge(nil)); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	})
}

func TestAJournalOutlivesItsWriters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	r, err := OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	next := func() {
		t.Helper()
		if err := r.Next(func(e Entry) { got = append(got, e.By+" "+e.Handed.Event) }); err != nil {
			t.Fatal(err)
		}
	}
	next()
	for _, by := range []string{"s1", "s2"} {
		j, err := OpenJournal(file, by)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range []string{"e1", "e2"} {
			if err := j.Write(handed("", event, 1)); err != nil {
				t.Fatal(err)
			}
			next()
		}
		// The next line is an incomplete write.
		if _, err := j.file.WriteString(`{"by":"` + by + `","handed":{"agent":"ann","ev`); err != nil {
			t.Fatal(err)
		}
		next()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"s1 e1", "s1 e2", "s2 e1", "s2 e2"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if r.Torn != 1 {
		t.Errorf("%d lines were torn where one was, and one is not at its end yet", r.Torn)
	}
	whole, err := os.ReadFile(file)
	if err != nil || strings.Count(string(whole), "\n") != 6 {
		t.Errorf("the file is %q, %v", whole, err)
	}
}

// TestLogsThatEndEarlySayNothingOfWhatWasUnderWay has one item accepted and not handed
// over, one handed over and not accepted, and one handed over twice. The last one is wrong
// even if the log is incomplete.
func TestLogsThatEndEarlySayNothingOfWhatWasUnderWay(t *testing.T) {
	f := audited(receipt(1, 5), handed("s1", "e1", 2), receipt(3, 7), handed("s1", "e2", 3), handed("s1", "e3", 3)).Judge(nil)
	if got := found(f); got != "1 lost, 1 unknown, 1 duplicated" && got != "1 lost, 1 duplicated, 1 unknown" {
		t.Errorf("it found %s", got)
	}
	f.Early = true
	if got := found(f); got != "1 duplicated" {
		t.Errorf("of logs that end early it found %s", got)
	}
	for _, c := range f.Checks(0) {
		if c.Name == "every accepted message was delivered" || c.Name == "no message was delivered that was never accepted" {
			t.Errorf("there is the check that %s", c.Name)
		}
	}
}

func TestWhoMayStillBeOwedSomething(t *testing.T) {
	a := audited(receipt(1, 5), handed("s1", "e1", 1))
	if got := a.Unsure(map[string]bool{"s2": true}); len(got) > 0 {
		t.Errorf("nobody was killed that had %q", got)
	}
	if got := a.Unsure(map[string]bool{"s1": true}); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("unsure are %q", got)
	}
	a.Take(acked("s1", "e1"))
	if got := a.Unsure(map[string]bool{"s1": true}); len(got) > 0 {
		t.Errorf("what was acknowledged is unsure: %q", got)
	}
	a.Take(handed("s2", "e2", 1))
	if got := a.Unsure(map[string]bool{"s1": true, "s2": true}); len(got) != 1 {
		t.Errorf("whoever had it last and was killed is sure: %q", got)
	}
}

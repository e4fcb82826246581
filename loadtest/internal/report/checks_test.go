package report

import (
	"bytes"
	"strings"
	"testing"
)

// runs returns one run for each check. For nil, the run does not have the check.
func runs(checks ...*Check) (all []*Document) {
	for _, c := range checks {
		d := &Document{Scenario: "fleet"}
		if c != nil {
			d.Checks = []Check{*c}
		}
		all = append(all, d)
	}
	return all
}

func TestVerdictsOnChecks(t *testing.T) {
	check := func(seen, least, wrong int64) *Check {
		return &Check{Name: "denies are honoured", Seen: seen, Least: least, Wrong: wrong}
	}
	kept, idle, lacking, wrong := check(9, 1, 0), check(0, 0, 0), check(0, 1, 0), check(9, 1, 1)
	for name, c := range map[string]struct {
		old, new []*Document
		want     Verdict
		says     string
	}{
		"kept by both":                            {runs(kept), runs(kept), Same, "same"},
		"kept, and then broken":                   {runs(kept), runs(wrong), Worse, "worse"},
		"broken, and then kept":                   {runs(wrong), runs(kept), Better, "better"},
		"as wrong as before":                      {runs(wrong), runs(wrong), Same, "same"},
		"more often wrong than before":            {runs(wrong), runs(check(9, 1, 2)), Worse, "worse"},
		"less often wrong, in a longer run":       {runs(check(9, 1, 2)), runs(check(90, 1, 3)), Better, "better"},
		"not at stake any more":                   {runs(kept), runs(idle), Untested, "not tested now"},
		"not at stake before":                     {runs(idle), runs(kept), Untested, "not tested before"},
		"never at stake":                          {runs(idle), runs(idle), Untested, "not tested"},
		"not put to the test although it must be": {runs(kept), runs(lacking), Worse, "worse: not tested"},
		"dropped":                                           {runs(kept), runs(nil), Untested, "not tested now"},
		"a new one that is kept":                            {runs(nil), runs(kept), Untested, "not tested before"},
		"a new one that is broken":                          {runs(nil), runs(wrong), Worse, "worse"},
		"one that was broken and is dropped":                {runs(wrong), runs(nil), Untested, "not tested now"},
		"one run of several is wrong":                       {runs(kept, kept), runs(kept, wrong), Worse, "worse"},
		"one run of several does not test it":               {runs(kept, kept), runs(kept, lacking), Worse, "worse: not tested"},
		"some runs of a side have it, and keep it":          {runs(kept, kept), runs(nil, kept), Same, "same"},
		"only the first run of a side does not, and wrong":  {runs(kept, kept), runs(nil, wrong), Worse, "worse"},
		"one run of the old ones was wrong, and none is so": {runs(kept, wrong), runs(kept, kept), Better, "better"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Compare(c.old, c.new, 0.03)
			if len(found.Checks) != 1 || found.Checks[0].Verdict != c.want || found.OK() != (c.want != Worse) {
				t.Fatalf("it is %+v, and all in all ok: %v", found.Checks, found.OK())
			}
			var b bytes.Buffer
			if err := Print(&b, found.Document()); err != nil {
				t.Fatal(err)
			}
			_, said, _ := strings.Cut(b.String(), "denies are honoured")
			said, _, _ = strings.Cut(said, "\n")
			if !strings.HasSuffix(said, " "+c.says) {
				t.Errorf("the row ends in %q", said)
			}
			if told := strings.Contains(b.String(), "not tested in one of them"); told != (c.want == Untested) {
				t.Errorf("the title is %q", found.Document().Title)
			}
		})
	}
}

func TestNothingInCommonIsNoComparison(t *testing.T) {
	a, b := &Document{Checks: []Check{{Name: "one", Seen: 1}}}, &Document{Checks: []Check{{Name: "another", Seen: 1}}}
	if c := Compare(one(a), one(b), 0); c.Common() || len(c.Checks) != 2 {
		t.Errorf("two runs that promise different things are %+v", c)
	}
	if c := Compare(one(a), one(a), 0); !c.Common() {
		t.Errorf("a run has nothing in common with itself: %+v", c)
	}
}

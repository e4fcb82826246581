package compare

import (
	"cmp"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// A Side is one check in the runs of a side.
type Side struct {
	// Runs have the check, Broken of them did not keep it: what one of them was wrong
	// about, or did not test at all, the others do not make good.
	Runs, Broken int
	// Seen and Wrong are what all of them saw together.
	Seen, Wrong int64
}

// in is the check of that name in some runs.
func in(runs []*result.Document, name string) (s Side) {
	for _, run := range runs {
		for _, c := range run.Checks {
			if c.Name != name {
				continue
			}
			s.Runs, s.Seen, s.Wrong = s.Runs+1, s.Seen+c.Seen, s.Wrong+c.Wrong
			if !c.OK() {
				s.Broken++
			}
		}
	}
	return s
}

// tested reports whether the side says anything of the promise.
func (s Side) tested() bool { return s.Runs > 0 && (s.Seen > 0 || s.Broken > 0) }

// A Held is one check of both sides.
type Held struct {
	Name     string
	Old, New Side
	Verdict  Verdict
}

// held compares all checks of any run: those of the new runs first, then those that only old
// runs have, so that a removed check is noticed.
func held(olds, news []*result.Document) (all []Held) {
	known := map[string]bool{}
	for _, side := range [][]*result.Document{news, olds} {
		for _, run := range side {
			for _, c := range run.Checks {
				if !known[c.Name] {
					known[c.Name] = true
					h := Held{Name: c.Name, Old: in(olds, c.Name), New: in(news, c.Name)}
					h.Verdict = h.verdict()
					all = append(all, h)
				}
			}
		}
	}
	return all
}

// verdict judges what became of a promise. One that is broken now, and of which nothing
// shows that it was before, is worse.
func (h Held) verdict() Verdict {
	before, now := h.Old, h.New
	switch {
	case now.Broken > 0 && before.Broken == 0:
		return Worse
	case !before.tested() || !now.tested():
		return Untested
	case before.Broken == 0:
		return Same
	case now.Broken == 0:
		return Better
	}
	// Both are broken: how often, of those times that it was at stake.
	switch cmp.Compare(now.Wrong*max(before.Seen, 1), before.Wrong*max(now.Seen, 1)) {
	case 1:
		return Worse
	case -1:
		return Better
	}
	return Same
}

package report

import "cmp"

// A Side is one check in the runs of a side.
type Side struct {
	// Runs is the number of runs with the check, and Broken the number of those that failed
	// it or did not test it. Other runs do not make up for a broken one.
	Runs, Broken int
	// Seen and Wrong are the sums over all of them.
	Seen, Wrong int64
}

// in returns the check of that name in some runs.
func in(runs []*Document, name string) (s Side) {
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

// tested reports whether the side tested the promise.
func (s Side) tested() bool { return s.Runs > 0 && (s.Seen > 0 || s.Broken > 0) }

// A Held is one check of both sides.
type Held struct {
	Name     string
	Old, New Side
	Verdict  Verdict
}

// heldChecks compares all checks of any run: those of the new runs first, then those that only old
// runs have, so that a removed check is noticed.
func heldChecks(olds, news []*Document) (all []Held) {
	known := map[string]bool{}
	for _, side := range [][]*Document{news, olds} {
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

// verdict compares a promise between the sides. It is worse if it is broken now, and no run
// shows that it was broken before.
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
	// Both are broken: compare the broken part of the tests.
	switch cmp.Compare(now.Wrong*max(before.Seen, 1), before.Wrong*max(now.Seen, 1)) {
	case 1:
		return Worse
	case -1:
		return Better
	}
	return Same
}

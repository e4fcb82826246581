// Package compare holds a run against an earlier one of the same scenario, and
// says of each figure whether it got better, worse or stayed the same: the same
// if the 95 % interval of the change holds no change at all, or if the change is
// too small to matter. How wide the interval is stands beside it, because "the
// same" of a wide one says little.
//
// Of each check it says the same, and, where one side does not have it or nothing was
// at stake there, that it was not tested.
package compare

// Package compare holds a run against an earlier one of the same scenario, and
// says of each figure whether it got better, worse or stayed the same: the same
// if the 95 % interval of the change holds no change at all, or if the change is
// too small to matter. How wide the interval is stands beside it, because "the
// same" of a wide one says little.
package compare

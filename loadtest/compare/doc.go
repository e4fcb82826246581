// Package compare compares a run with an earlier one of the same scenario. Each figure is
// better, worse or the same. It is the same if the 95 % interval of the change contains no
// change, or if the change is too small to matter. The report shows the width of the
// interval, because "the same" with a wide interval means little.
//
// It compares checks too. A check is not tested if one side lacks it, or if no event there
// concerned it.
package compare

// Package compare compares runs with earlier ones of the same scenario. A figure is better or
// worse if a Mann-Whitney U test finds a difference between the samples, and if the
// difference is not too small to matter.
//
// It compares checks too. A check is not tested if one side lacks it, or if no event there
// concerned it.
package compare

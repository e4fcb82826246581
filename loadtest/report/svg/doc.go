// Package svg draws the plots of load tests. A picture needs nothing else: no
// script, no font that might be missing, no file beside it. Every axis is named
// with its unit and starts at zero or says that it does not; what was done to
// the fabric is a numbered mark with a key below; the legend stands above the
// data, never over it. Lines differ in colour, in colours that are told apart
// by all eyes, and in their dashes.
//
// It draws itself, because a general library of plots puts its legend over the
// data, knows no marks, and lays text out by fonts that the reader of the
// picture may not have. Here text is laid out by the widest of the fonts it may
// be shown in, and a test holds that no two texts touch.
//
// # The parts of a picture
//
// From above: title, legend, name of the vertical axis, numbers of the marks,
// the data, ticks and name of the horizontal axis, key of the marks.
package svg

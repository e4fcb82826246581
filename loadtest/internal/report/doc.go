// Package report has the results of load tests: figures that can be compared with those of
// another run, checks that every answer was right, tables, and plots. A run with more data
// embeds a [Document] in its own report; the members are side by side in the JSON.
//
// result.go and read.go define and read a document. print.go, html.go and plot.go show it, and
// compare.go compares runs with earlier ones. A figure is better or worse if a Mann-Whitney U
// test finds a difference between the samples, and if the difference is not too small to matter.
// stats.go has medians with bootstrap intervals, units.go formats values, machine.go describes
// the machine, and live.go shows a run while it lasts.
package report

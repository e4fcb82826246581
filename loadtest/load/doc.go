// Package load makes an open loop: each call has a moment at which it is due, and is
// started then, whether or not earlier ones were answered. A fabric that stalls
// is not spared the calls that fall into its stall, and what they wait is counted
// from the moment that they were due. So no figure can leave out what a slow
// answer made others wait (coordinated omission).
//
// A [Curve] is how many calls are due over time, [Arrivals] are one agent's moments
// of it, a [Schedule] starts what is due, a [Recorder] counts in histograms what
// came of it, second by second, and a [Series] puts together what the recorders
// of several processes counted. A [Lag] tells what is late from a process that did
// not run itself.
package load

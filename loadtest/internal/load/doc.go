// Package load makes calls, and counts them.
//
// In an open loop each call has a planned time and starts then, even if earlier calls have no
// answer yet. Its latency counts from the planned time. So a fabric that stalls is charged for
// all calls that were due during the stall, and no figure can omit them (coordinated
// omission). A [Curve] is the number of planned calls over time, [Arrivals] are the times of
// one agent, a [Schedule] starts calls, a [Recorder] counts results in histograms per second,
// and a [Series] combines the recorders of several processes. A [Lag] detects that a process
// itself did not run.
//
// In a closed loop ([Run]) each caller sends its next call when the previous one was answered.
// A call counts in the window in which it ended. So calls that were in progress at the start
// replace those that the end cuts off, and slow calls count as fairly as fast ones.
package load

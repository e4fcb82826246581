// Package live shows a load test while it runs: to whoever waits for it, as a
// line that says how far it is, and to Prometheus, if it is told to listen.
//
// A scenario is handed a [Run] and tells it what happens. A nil Run takes
// everything and shows nothing, and one without an address counts nothing, so
// that a scenario need not ask whether anybody looks.
//
// # Metrics
//
// All are named hookfabric_loadtest_…, in a registry of their own:
//
//	calls_total{kind,outcome}       calls that are over
//	call_seconds{kind}              how long they took, from when they were due
//	offered_per_second              calls that are due now, per second
//	in_flight                       calls that are due and not over
//	wrong_total{check}              answers that broke a promise
//	faults_total{kind}              what was done to the fabric
//	progress_ratio                  how much of the run is over, from 0 to 1
//	run_info{scenario,go_version}   1
//	run_start_time_seconds          when it began
//
// Values of labels are words of the program. Should they be more than some
// dozens, the rest counts as "other".
package live

// Package live shows the progress of a load test: as lines in the terminal, and as
// metrics for Prometheus if it has an address.
//
// A scenario reports to a [Run]. A nil Run shows nothing, and a Run without an address
// counts nothing, so a scenario does not check for either.
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

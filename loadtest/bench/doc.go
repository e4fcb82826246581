// Package bench measures what a call costs, against what it could cost at
// least: one bare request-reply on the same server. Only ratios are judged,
// each to the bare request-reply of the same repetition, because machines
// differ and a busy machine differs from itself. The order of the rows is new
// in each repetition, so that what drifts drifts for all.
//
// rows.go holds what is measured and the budgets, session.go the processes,
// run.go the repetitions, report.go the judgement and print.go the table.
package bench

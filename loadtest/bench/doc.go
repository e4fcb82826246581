// Package bench measures the cost of a call, compared with one bare request-reply on the
// same server. Only ratios have budgets, each to the bare request-reply of the same
// repetition, because absolute times differ between machines and over time. Each repetition
// measures the rows in random order, so a slow change of the machine affects all of them.
//
// rows.go defines the rows and budgets, session.go the processes, run.go the repetitions,
// report.go the ratios and print.go the table.
package bench

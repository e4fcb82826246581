// Package bench measures things in turns and compares them, and holds what all measuring
// commands share. Only ratios have budgets, each to the base of the same repetition,
// because absolute times differ between machines and over time. Each repetition measures
// in random order, so a slow change of the machine affects everything equally.
//
// options.go has the options and the parts of a command, contender.go the repetitions,
// report.go the ratios, and fabric.go the processes. Three commands are tables here:
// calls.go (bench), queries.go (loop) and record.go.
package bench

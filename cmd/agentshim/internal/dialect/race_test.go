//go:build race

package dialect_test

// raceDetector reports whether the race detector is on, which makes everything about ten times as slow.
const raceDetector = true

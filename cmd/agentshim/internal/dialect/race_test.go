//go:build race

package dialect_test

// raceDetector makes everything about ten times as slow.
const raceDetector = true

//go:build race

package dispatch_test

// raceDetector: this binary looks for data races.
const raceDetector = true

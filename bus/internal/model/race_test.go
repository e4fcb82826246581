//go:build race

package model_test

// raceDetector: this binary looks for data races.
const raceDetector = true

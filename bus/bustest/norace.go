//go:build !race

package bustest

// Raced reports whether the race detector is on, which makes everything about five times as slow. Long properties and
// scenarios run only without it.
const Raced = false

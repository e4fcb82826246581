//go:build race

package bustest

// Raced says whether this binary looks for data races, which makes everything about
// five times as slow. Laws and scenarios that take long are the plain run's.
const Raced = true

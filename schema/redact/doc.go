// Package redact takes secrets out of what is written down: what has the form of
// one wherever it stands ([Text], [Value]), and what stands where [Rules] say that
// one is. It is no proof that nothing is left: a secret that looks like any other
// word, at a place that no rule names, is not known for one.
package redact

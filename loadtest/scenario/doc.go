// Package scenario says what a run of many agents is: how many there are, what
// they do and how often, on which fabric, and what goes wrong meanwhile. It reads
// that from strict YAML: a file with a fault does not run, and all faults are said at
// once, each with its line and what to write instead.
package scenario

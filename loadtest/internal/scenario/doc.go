// Package scenario describes a run of many agents: their number, their calls and rate,
// the fabric, and the faults during the run. It reads this from strict YAML. A file with
// errors does not run; all values that are out of range are reported at once, each with its
// key and a correction.
package scenario

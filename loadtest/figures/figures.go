// Package figures has the reports that loadtest/BENCHMARKS.md shows. `loadtest model`
// calculates with one of them.
package figures

import _ "embed"

// Scale is the report of the scale run, which has the cost of one agent, call and item. The
// build needs its file.
//
//go:embed scale.json
var Scale []byte

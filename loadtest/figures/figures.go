// Package figures holds the runs that BENCHMARKS.md shows. The programs of this
// repository reckon with one of them.
package figures

import _ "embed"

// Scale is the report of the scale run, which says what one of each costs. Its file must
// be there for anything to be built.
//
//go:embed scale.json
var Scale []byte

//go:build !linux || (!amd64 && !arm64)

package early

// taken: elsewhere nothing is done early.
var taken Start

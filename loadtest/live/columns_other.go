//go:build !unix

package live

import "io"

// columns is 0: no terminal is known here.
func columns(io.Writer) int { return 0 }

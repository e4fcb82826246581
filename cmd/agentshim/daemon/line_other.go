//go:build !unix

package daemon

import (
	"errors"
	"fmt"
	"time"
)

// dial returns an error on systems without unix sockets.
func dial(string, time.Time) (line, error) {
	return nil, fmt.Errorf("%w: %w", ErrAbsent, errors.ErrUnsupported)
}

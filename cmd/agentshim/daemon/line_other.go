//go:build !unix

package daemon

import (
	"errors"
	"fmt"
	"time"
)

// dial finds no daemon where there are no unix sockets.
func dial(string, time.Time) (line, error) {
	return nil, fmt.Errorf("%w: %w", ErrAbsent, errors.ErrUnsupported)
}

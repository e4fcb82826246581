//go:build !linux && !darwin

package peer

import "errors"

// UID returns an error on this system: every hook asks the fabric itself.
func UID(int) (int, error) {
	return 0, errors.New("this system does not name the user of a socket's other end; run the hooks without a daemon")
}

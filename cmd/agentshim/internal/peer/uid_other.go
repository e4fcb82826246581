//go:build !linux && !darwin

package peer

import "errors"

// UID is an error where the system does not tell who the other end is: there is
// no daemon then, and every hook asks the fabric itself.
func UID(int) (int, error) {
	return 0, errors.New("this system does not name the user of a socket's other end; run the hooks without a daemon")
}

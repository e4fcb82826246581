package state

import (
	"bytes"

	"github.com/hookfabric/hookfabric/schema"
)

// Same reports whether two configurations have the same content; their numbers do not count.
func Same(a, b *schema.Config) (bool, error) {
	x, err := content(*a)
	if err != nil {
		return false, err
	}
	y, err := content(*b)
	return bytes.Equal(x, y), err
}

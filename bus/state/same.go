package state

import (
	"bytes"

	"github.com/hookfabric/hookfabric/schema"
)

// Same reports whether two configurations say the same, whatever their numbers.
func Same(a, b *schema.Config) (bool, error) {
	x, err := content(*a)
	if err != nil {
		return false, err
	}
	y, err := content(*b)
	return bytes.Equal(x, y), err
}

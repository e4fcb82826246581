package gen

import (
	"math/bits"

	"pgregory.net/rapid"
)

// upTo draws a number from 0 to n, all about equally often. Rapid's own ranges
// prefer small numbers, which is good for lengths but would leave the last
// columns of a table of cells nearly empty.
func upTo(n int) *rapid.Generator[int] {
	const spare = 2 // bits that make the remainder even enough
	return rapid.Custom(func(t *rapid.T) int {
		drawn := 0
		for range bits.Len(uint(n)) + spare {
			drawn *= 2
			if rapid.Bool().Draw(t, "bit") {
				drawn++
			}
		}
		return drawn % (n + 1)
	})
}

// oneOf draws one of some values, all about equally often.
func oneOf[V any](some ...V) *rapid.Generator[V] {
	return rapid.Map(upTo(len(some)-1), func(i int) V { return some[i] })
}

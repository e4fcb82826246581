package aggregator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestTheLengthOfATextAsJSONIsNotUnderrated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		data, err := schema.Marshal(text)
		if err != nil {
			t.Skip("it is never sent")
		}
		if got, want := asJSON(text), int64(len(data)-2); got < want {
			t.Errorf("%d, and it is %d: %s", got, want, data)
		}
		most := rapid.IntRange(0, 100).Draw(t, "most")
		if part := upTo(text, most); text[:len(part)] != part || asJSON(part) > int64(most) {
			t.Errorf("%q is what is left of %q", part, text)
		}
	})
}

package app

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestATextOnStdinIsNeverTruncated(t *testing.T) {
	longest := strings.Repeat("x", schema.MaxText)
	for end, taken := range map[string]bool{"": true, "\n": true, "\r\n": true, "x": false, "\nthe rest": false, "\r\nthe rest": false} {
		text, err := textOf([]string{"-"}, strings.NewReader(longest+end))
		if taken != (err == nil) || taken && text != longest {
			t.Errorf("%d bytes and %q: %d bytes, %v", len(longest), end, len(text), err)
		}
	}
}

package install

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatIsWrittenInTheLastMomentStays has another program write between the last check and the
// exchange.
func TestWhatIsWrittenInTheLastMomentStays(t *testing.T) {
	for name, want := range map[string]string{"before": "after", "somebody's": "somebody's"} {
		dir := t.TempDir()
		c := Change{Path: filepath.Join(dir, "settings.json"), Before: []byte("before"), After: []byte("after"), there: true, mode: 0o600}
		if err := os.WriteFile(c.Path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		err := c.put(c.After, c.Path, c.trade)
		if got, rerr := os.ReadFile(c.Path); rerr != nil || string(got) != want || errors.Is(err, errChanged) != (name == want) {
			t.Errorf("over %s: %s, %v, %v", name, got, err, rerr)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("over %s: %v, %v", name, left, err)
		}
	}
}

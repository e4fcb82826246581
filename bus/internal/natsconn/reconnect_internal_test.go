package natsconn

import (
	"testing"
	"time"
)

// A restart is noticed soon, and a long outage does not add load.
func TestReconnectsBecomeLessFrequent(t *testing.T) {
	soon := time.Duration(0)
	for attempt := 1; attempt <= 1000; attempt++ {
		d := reconnectDelay(attempt)
		if d < reconnectWait || d > reconnectLimit {
			t.Fatalf("attempt %d comes after %v", attempt, d)
		}
		switch {
		case attempt <= reconnectSoon:
			soon += d
		case attempt > 20 && d < reconnectLimit/2:
			t.Fatalf("attempt %d comes after only %v", attempt, d)
		}
	}
	if soon > 2*time.Second {
		t.Errorf("the first attempts take %v", soon)
	}
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[reconnectDelay(1)] = true
	}
	if len(seen) < 50 {
		t.Errorf("a hundred clients return at %d instants", len(seen))
	}
}

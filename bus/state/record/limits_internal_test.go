package record

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

func TestCopiesNeverGetFewer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ has, asked, want int }{{3, 1, 3}, {3, 0, 3}, {1, 3, 3}, {1, 0, 1}} {
		if got := (Limits{Replicas: c.asked}).instead(jetstream.StreamConfig{Replicas: c.has}).Replicas; got != c.want {
			t.Errorf("of %d copies, and %d asked for, %d are kept, want %d", c.has, c.asked, got, c.want)
		}
	}
}

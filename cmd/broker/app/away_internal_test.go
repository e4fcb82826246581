package app

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// door is a server with clients that never leave.
type door struct {
	here []uint64
	err  error
	did  []string
}

func (d *door) AskToLeave() ([]uint64, error) {
	d.did = append(d.did, fmt.Sprint("ask ", d.here))
	if d.err != nil {
		return nil, d.err
	}
	return slices.Clone(d.here), nil
}

func (d *door) Drop(told []uint64) int {
	d.did = append(d.did, fmt.Sprint("drop ", told))
	return len(told)
}

func TestClientsOfABrokerThatIsCutOffAreSentAwayOnce(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		cut  [2]int // seconds
		err  error
		want []string
	}{
		"it is not cut off":             {want: nil},
		"it stood still for a moment":   {cut: [2]int{5, 6}},
		"it is cut off for a moment":    {cut: [2]int{5, 9}, want: []string{"ask [1 2]"}},
		"it is cut off":                 {cut: [2]int{5, 60}, want: []string{"ask [1 2]", "drop [1 2]"}},
		"nobody knows who is connected": {cut: [2]int{5, 60}, err: errors.New("no"), want: []string{"ask [1 2]"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &door{here: []uint64{1, 2}, err: c.err}
			now := 0
			u := usher{fresh: func(time.Time) bool { return now < c.cut[0] || now >= c.cut[1] }, doors: d, log: slog.New(slog.DiscardHandler)}
			for ; now < 50; now++ {
				u.look(start.Add(time.Duration(now) * time.Second))
				if now == 8 {
					d.here = append(d.here, 3) // comes later, and stays
				}
			}
			if !slices.Equal(d.did, c.want) {
				t.Errorf("%q, want %q", d.did, c.want)
			}
		})
	}
}

func TestClientsAreSentAwayAgainWhenItHappensAgain(t *testing.T) {
	d, fresh := &door{here: []uint64{1}}, false
	u := usher{fresh: func(time.Time) bool { return fresh }, doors: d, log: slog.New(slog.DiscardHandler)}
	for i := range 40 {
		fresh = i == 20
		u.look(time.Unix(int64(i), 0))
	}
	if want := []string{"ask [1]", "drop [1]", "ask [1]", "drop [1]"}; !slices.Equal(d.did, want) {
		t.Errorf("%q, want %q", d.did, want)
	}
}

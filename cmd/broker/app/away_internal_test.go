package app

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// stuckServer is a server whose clients never leave.
type stuckServer struct {
	here []uint64
	err  error
	did  []string
}

func (s *stuckServer) AskToLeave() ([]uint64, error) {
	s.did = append(s.did, fmt.Sprint("ask ", s.here))
	if s.err != nil {
		return nil, s.err
	}
	return slices.Clone(s.here), nil
}

func (s *stuckServer) Drop(asked []uint64) int {
	s.did = append(s.did, fmt.Sprint("drop ", asked))
	return len(asked)
}

func TestABrokerThatIsCutOffRedirectsItsClientsOnce(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		cut  [2]int // seconds
		err  error
		want []string
	}{
		"it is not cut off":             {want: nil},
		"it was suspended for a moment": {cut: [2]int{5, 6}},
		"it is cut off for a moment":    {cut: [2]int{5, 9}, want: []string{"ask [1 2]"}},
		"it is cut off":                 {cut: [2]int{5, 60}, want: []string{"ask [1 2]", "drop [1 2]"}},
		"the clients cannot be listed":  {cut: [2]int{5, 60}, err: errors.New("no"), want: []string{"ask [1 2]"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stuckServer{here: []uint64{1, 2}, err: c.err}
			now := 0
			r := clientRedirect{fresh: func(time.Time) bool { return now < c.cut[0] || now >= c.cut[1] }, server: s, log: slog.New(slog.DiscardHandler)}
			for ; now < 50; now++ {
				r.check(start.Add(time.Duration(now) * time.Second))
				if now == 8 {
					s.here = append(s.here, 3) // connects later, and stays
				}
			}
			if !slices.Equal(s.did, c.want) {
				t.Errorf("%q, want %q", s.did, c.want)
			}
		})
	}
}

func TestABrokerThatIsCutOffAgainRedirectsItsClientsAgain(t *testing.T) {
	s, fresh := &stuckServer{here: []uint64{1}}, false
	r := clientRedirect{fresh: func(time.Time) bool { return fresh }, server: s, log: slog.New(slog.DiscardHandler)}
	for i := range 40 {
		fresh = i == 20
		r.check(time.Unix(int64(i), 0))
	}
	if want := []string{"ask [1]", "drop [1]", "ask [1]", "drop [1]"}; !slices.Equal(s.did, want) {
		t.Errorf("%q, want %q", s.did, want)
	}
}

package app

import "testing"

func TestWhetherItHelpsToStartTheStoreAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off, clustered, broken, silent, want bool
	}{
		"it is off":                             {off: true, want: true},
		"it is off, one of several":             {off: true, clustered: true, want: true},
		"it cannot write":                       {broken: true, want: true},
		"it cannot write, one of several":       {broken: true, clustered: true},
		"it is silent for long":                 {silent: true, want: true},
		"it is silent for long, one of several": {silent: true, clustered: true},
		"it is slow for a while":                {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := helps(c.off, c.clustered, c.broken, c.silent); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

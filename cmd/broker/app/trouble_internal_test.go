package app

import "testing"

func TestWhenToRestartTheStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off, clustered, broken, silent, want bool
	}{
		"it is off":                                 {off: true, want: true},
		"it is off, in a cluster":                   {off: true, clustered: true, want: true},
		"it cannot write":                           {broken: true, want: true},
		"it cannot write, in a cluster":             {broken: true, clustered: true},
		"it has been silent for long":               {silent: true, want: true},
		"it has been silent for long, in a cluster": {silent: true, clustered: true},
		"it is slow for a while":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := helps(c.off, c.clustered, c.broken, c.silent); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

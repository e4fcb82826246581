package machine

import (
	"runtime"
	"strings"
	"testing"
)

func TestTheFactsOfThisMachine(t *testing.T) {
	f := Here()
	if f.CPUs < 1 || f.Go != runtime.Version() || f.Load < 0 {
		t.Errorf("the facts are %+v", f)
	}
	if s := f.String(); !strings.Contains(s, runtime.GOARCH) || !strings.Contains(s, f.Go) {
		t.Errorf("in words they are %q", s)
	}
}

package report

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
	if got := marked("0123456789abcdef", true); got != "0123456789ab+" {
		t.Errorf("changed code is of %q", got)
	}
	if got := marked("", false); got != "" {
		t.Errorf("no code is of %q", got)
	}
	if s := f.String(); !strings.Contains(s, runtime.GOARCH) || !strings.Contains(s, f.Go) {
		t.Errorf("in words they are %q", s)
	}
}

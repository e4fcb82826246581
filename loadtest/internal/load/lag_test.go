package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAProcessThatRunsHasNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var l Lag
		l.Run(ctx)
		if got := l.Most(); got != 0 {
			t.Errorf("with a clock that is never late it is %v", got)
		}
	})
}

func TestTheLagIsTheWorstOfTheLastLooks(t *testing.T) {
	var l Lag
	l.looks[3].Store(int64(40 * time.Millisecond))
	l.looks[lagKept-1].Store(int64(70 * time.Millisecond))
	if got := l.Most(); got != 70*time.Millisecond {
		t.Errorf("it is %v", got)
	}
}

func TestALookThatIsStillLateCounts(t *testing.T) {
	var l Lag
	l.due.Store(time.Now().Add(-time.Hour).UnixNano())
	if got := l.Most(); got < time.Hour {
		t.Errorf("an hour late it is %v", got)
	}
}

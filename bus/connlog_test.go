package bus

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestReportsAreSentences(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a slow subscription":     {nats.ErrSlowConsumer, "level=WARN msg=\"a subscription is too slow"},
		"a refused permission":    {fmt.Errorf("%w: publish", nats.ErrPermissionViolation), "level=ERROR msg=\"NATS denied"},
		"refused credentials":     {nats.ErrAuthorization, "level=ERROR msg=\"NATS refuses"},
		"something else entirely": {errors.New("boo"), "level=WARN msg=\"NATS reports an error\""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			report(slog.New(slog.NewTextHandler(&log, nil)), &nats.Subscription{Subject: "s.1"}, c.err)
			if !strings.Contains(log.String(), c.want) || !strings.Contains(log.String(), "subject=s.1") {
				t.Errorf("the log says %s", log.String())
			}
		})
	}
}

// A client that repeats a denied operation must not flood the log.
func TestTheSameDenialIsLoggedOnceAMinute(t *testing.T) {
	var d denials
	at := time.Now()
	for _, c := range []struct {
		what  string
		after time.Duration
		want  bool
	}{{"beat", 0, true}, {"beat", time.Second, false}, {"run", time.Second, true}, {"beat", denialEvery - 1, false}, {"beat", denialEvery, true}, {"beat", denialEvery + 1, false}} {
		if got := d.isNew(c.what, at.Add(c.after)); got != c.want {
			t.Errorf("%s after %v is new: %t", c.what, c.after, got)
		}
	}
	for i := range 10 * maxDenials {
		if d.isNew(fmt.Sprint(i), at); len(d.logged) > maxDenials {
			t.Fatalf("%d are remembered", len(d.logged))
		}
	}
}

package bus

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestReportsAreSentences(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a slow subscription":     {nats.ErrSlowConsumer, "level=WARN msg=\"a subscription is too slow"},
		"a refused permission":    {fmt.Errorf("%w: publish", nats.ErrPermissionViolation), "level=ERROR msg=\"NATS does not permit"},
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

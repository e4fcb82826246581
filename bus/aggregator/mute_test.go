package aggregator_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// Who asks from an inbox with another prefix waits in vain: operators are told why, once
// in a while, and all such events are counted.
func TestWhoCanNotBeAnsweredIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := startWith(t, aggregator.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, library{"yes": says(schema.Allowed())}, hook("yes"))
		for _, reply := range []string{"", "MINE.x", "MINE.x", "hook.v1.ctl.inject.b"} {
			m := event(schema.PreToolUse)
			m.Reply = reply
			if err := f.shim.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.value("malformed_total"); n != 4 {
			t.Errorf("%v were counted", n)
		}
		if said := log.String(); strings.Count(said, "its client has to have an inbox prefix") != 1 || !strings.Contains(said, "reply=MINE.x") {
			t.Errorf("it is logged:\n%s", said)
		}
	})
}

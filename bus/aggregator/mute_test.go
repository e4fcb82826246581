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

// TestWhoCanNotBeAnsweredIsLogged checks that an event whose reply inbox has another prefix gets no
// answer. The log names the reason, once in a while, and a metric counts all such events.
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
		if logged := log.String(); strings.Count(logged, "give its client an inbox prefix") != 1 || !strings.Contains(logged, "reply=MINE.x") {
			t.Errorf("it is logged:\n%s", logged)
		}
	})
}

// TestABrokerSaysNothingWhereWorkersAnswer checks that a worker, which knows the reply subject of
// its batch, cannot have a broker publish there in the name of another worker.
func TestABrokerSaysNothingWhereWorkersAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x", remote))
		w := f.worker("w")
		asked := f.send(event(schema.PreToolUse))
		b, m := w.batch()
		if err := w.nc.PublishRequest("hook.v1.ctl.status._", m.Reply, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it would be answered at once
		w.answer(b, m, schema.Denied("no"))
		v, _ := asked.verdict()
		want(t, v, schema.Deny, "x:ok")
	})
}

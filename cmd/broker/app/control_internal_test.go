package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

func TestASlowAnswerIsReportedOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		takes   time.Duration // 0: no answer
		waiting bool
		says    string
	}{
		{"a fast answer is not reported", time.Millisecond, false, ""},
		{"a slow answer is reported", 40 * time.Second, true, ""},
		{"without an answer the result is unknown", 0, true,
			"no answer came within 1m10s; hooks.yaml may have been applied: look with 'broker config history'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := bustest.Start(t)
				serving := bustest.Connect(t, server, "broker")
				_, err := serving.Subscribe("ask", func(m *nats.Msg) {
					if c.takes > 0 {
						<-time.After(c.takes)
						must(t, m.Respond([]byte(`{"version":8}`)))
					}
				})
				must(t, err)
				reports := 0
				r := remote{wait: changeTime, slow: func() { reports++ }}
				ctx, cancel := r.bounded(t.Context())
				defer cancel()
				must(t, serving.FlushWithContext(ctx))
				var answer schema.ConfigAnswer
				err = r.request(ctx, bustest.Connect(t, server, "cli"), &nats.Msg{Subject: "ask"}, 0, &answer)
				switch {
				case c.says == "" && (err != nil || answer.Version != 8):
					t.Errorf("answer %+v, error %v", answer, err)
				case c.says != "" && (err == nil || !strings.HasSuffix(inDoubt(err, "hooks.yaml").Error(), c.says)):
					t.Errorf("error %v", inDoubt(err, "hooks.yaml"))
				}
				if (reports == 1) != c.waiting || reports > 1 {
					t.Errorf("%d reports that it takes long", reports)
				}
			})
		})
	}
}

func TestARequestWithoutReceiversCertainlyFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc := bustest.Connect(t, bustest.Start(t), "cli")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := remote{url: "nats://user:secret@there"}
		err := r.request(ctx, nc, &nats.Msg{Subject: "ask"}, 0, nil)
		if !errors.Is(err, nats.ErrNoResponders) || inDoubt(err, "hooks.yaml") != err || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
		err = r.request(ctx, nc, &nats.Msg{Subject: "ask", Data: make([]byte, nc.MaxPayload()+1)}, 0, nil)
		if err == nil || !strings.Contains(err.Error(), "at most 8388608 in one message") || inDoubt(err, "hooks.yaml") != err {
			t.Errorf("error %v", err)
		}
	})
}

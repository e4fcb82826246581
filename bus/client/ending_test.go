package client_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// Unread items keep an agent from ending its turn. If the agent has read them and only
// the acknowledgement was lost, the turn ends, unless another hook decided otherwise.
func TestItemsThatWereReadDoNotKeepATurnGoing(t *testing.T) {
	ran := func(name string, d schema.Decision) schema.ExecutedHook {
		return schema.ExecutedHook{Hook: name, Decision: d, Outcome: schema.OK}
	}
	for name, c := range map[string]struct {
		hooks []schema.ExecutedHook
		news  bool
		want  schema.Decision
	}{
		"nothing but the delivery":     {[]schema.ExecutedHook{ran("messages", schema.Retry)}, false, schema.Continue},
		"something new beside it":      {[]schema.ExecutedHook{ran("messages", schema.Retry)}, true, schema.Retry},
		"a hook that wants more":       {[]schema.ExecutedHook{ran("check", schema.Retry), ran("messages", schema.None)}, false, schema.Retry},
		"a hook that may have changed": {[]schema.ExecutedHook{ran("redact", schema.None), ran("messages", schema.Retry)}, false, schema.Retry},
		"the verdict names no hook":    {nil, false, schema.Retry},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{newFake(t, client.Options{}), bustest.NewFabric(theFabric)}
				later := false
				s.serve(func(q *question) {
					v := s.Judge(q.EventRequest)
					for i := range v.Injections {
						v.Injections[i].Hook = "messages"
					}
					if v.Decision, v.ExecutedHooks = schema.Retry, []schema.ExecutedHook{ran("messages", schema.Retry)}; later {
						v.ExecutedHooks = c.hooks
					}
					v.Reason = "1 message arrived before your turn ended; continue with it"
					bustest.Respond(q.m, v)
				})
				s.Lock()
				s.Deaf = true // acknowledgements are ignored
				s.Unlock()
				s.Put(bustest.Item(1, "news"))
				v := s.must()
				if v.Decision != schema.Retry || !slices.Equal(contents(v), []string{"news"}) {
					t.Fatalf("%+v", v)
				}
				s.client.Handed(v.EventID)
				pass(bustest.LeaseFor)
				if later = true; c.news {
					s.Put(bustest.Item(2, "more"))
				}
				v = s.must()
				if v.Decision != c.want || (v.Reason == "") != (c.want == schema.Continue) || slices.Contains(contents(v), "news") {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

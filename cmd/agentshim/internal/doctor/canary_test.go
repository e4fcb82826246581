package doctor

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// If a hook prints nothing about a call that the fabric has no record of, the doctor gives a reason of its
// own.
func TestWhyACallWasNotJudgedIsSaid(t *testing.T) {
	o := &Options{NATS: "nats://u:secret@there:1"}
	for name, c := range map[string]struct {
		feed *nats.Subscription
		said string
		want string
	}{
		"the hook says why":                     {&nats.Subscription{}, "agentshim: no broker", "the fabric did not judge it: agentshim: no broker"},
		"the hook says nothing":                 {&nats.Subscription{}, nothing, "the fabric at nats://***@there:1 has no record of it"},
		"the daemon says nothing over HTTP":     {&nats.Subscription{}, "", "asks another fabric; compare their --nats with this URL"},
		"the doctor does not reach the fabric":  {nil, nothing, "doctor cannot see whether the fabric judged it"},
		"neither does the hook, and it says so": {nil, "agentshim: no broker", "the fabric did not judge it: agentshim: no broker"},
	} {
		if got := unjudged(o, &fabric{feed: c.feed}, c.said); !strings.Contains(got, c.want) || strings.Contains(got, nothing) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

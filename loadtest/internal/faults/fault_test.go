package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func seconds(n float64) schema.Duration { return schema.Duration(n * float64(time.Second)) }

func TestWhatIsWrongWithAFault(t *testing.T) {
	members := []string{"broker-1", "worker-1", "worker-2"}
	for name, c := range map[string]struct {
		fault Fault
		want  string // empty: nothing is wrong
	}{
		"a kill needs nothing but a member":         {Fault{Kind: Kill, Member: "broker-1"}, ""},
		"a glob means those that it matches":        {Fault{Kind: Kill, Member: "worker-*"}, ""},
		"a stop that lasts":                         {Fault{Kind: Stop, Member: "worker-1", For: seconds(1)}, ""},
		"a delay with its latency":                  {Fault{Kind: Delay, Member: "*", For: seconds(1), Latency: seconds(.1), Jitter: seconds(.1)}, ""},
		"a slow network with its rate":              {Fault{Kind: Slow, Member: "*", For: seconds(1), Rate: 1000}, ""},
		"an unknown kind":                           {Fault{Kind: "flood", Member: "broker-1"}, "unknown kind of fault"},
		"no member":                                 {Fault{Kind: Kill}, "names no member"},
		"a member that is not there":                {Fault{Kind: Kill, Member: "shim-1"}, "broker-1, worker-1"},
		"a stop that never ends":                    {Fault{Kind: Stop, Member: "worker-1"}, "needs a duration"},
		"a reset that lasts":                        {Fault{Kind: Reset, Member: "worker-1", For: seconds(1)}, "has no duration"},
		"a time that is negative":                   {Fault{Kind: Kill, Member: "*", At: -1}, "cannot be negative"},
		"a delay without a latency":                 {Fault{Kind: Delay, Member: "*", For: seconds(1)}, "needs its latency"},
		"a jitter that is negative":                 {Fault{Kind: Delay, Member: "*", For: seconds(1), Latency: seconds(1), Jitter: -1}, "jitter is -1ns"},
		"a latency for a kill":                      {Fault{Kind: Kill, Member: "*", Latency: seconds(1)}, "only to a delay"},
		"a slow network without a rate":             {Fault{Kind: Slow, Member: "*", For: seconds(1)}, "needs its rate"},
		"a rate for a cut":                          {Fault{Kind: Cut, Member: "*", For: seconds(1), Rate: 5}, "only to slow"},
		"a fault of which nothing is right at once": {Fault{Kind: Cut, Rate: 5, At: -1}, "names no member\nthe times of a fault"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(c.fault.Check(members), "\n")
			if c.want == "" && got != "" || c.want != "" && !containsAll(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

// containsAll reports whether s contains each line of want.
func containsAll(s, want string) bool {
	for line := range strings.SplitSeq(want, "\n") {
		if !strings.Contains(s, line) {
			return false
		}
	}
	return true
}

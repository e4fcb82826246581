package aggregator_test

import (
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

func TestARequestThatMayHaveWaitedForLongChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{renewed: make(chan struct{})}
		f := startWith(t, aggregator.Options{Lease: l}, library{})
		for _, lapsed := range []bool{true, false} {
			l.lapsed.Store(lapsed)
			for _, subject := range []string{"hook.v1.ctl.config._", "hook.v1.ctl.hooks.agent1"} {
				var failure schema.ControlError
				if err := schema.Unmarshal(f.control(subject).Data, &failure); err != nil {
					t.Fatal(err)
				}
				// Asked again it is served, and has no configuration to change.
				want := map[bool]string{
					true:  "this broker was cut off from the fabric when the request arrived; nothing changed, try again",
					false: "this broker does not store the configuration",
				}[lapsed]
				if failure.Code != schema.CodeUnavailable || failure.Message != want {
					t.Errorf("%s, lapsed %t: %+v", subject, lapsed, failure)
				}
			}
		}
	})
}

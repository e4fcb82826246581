package aggregator_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// A shim that heard nothing asks again, gets the answer to the first question all
// the same, acknowledges it, and says so once more since nobody confirmed it.
func TestALateSecondQuestionTakesAlongNothingThatIsAcknowledgedUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		one, two := join(t, s, "one"), join(t, s, "two")
		one.inject("text-0")
		synctest.Wait() // whichever broker took it
		if got := texts(one.ask(event(schema.PostToolUse))); len(got) != 1 {
			t.Fatalf("%q", got)
		}
		acknowledge := `{"fabric":"fabric-1","events":["` + eventID + `"]}`
		one.request("ack.a", acknowledge)
		one.inject("text-1")
		synctest.Wait()
		two.ask(with(event(schema.PostToolUse), eventID, 2)) // nobody listens to the answer
		for range 4 {                                        // whichever broker takes it
			two.request("ack.a", acknowledge)
		}
		<-time.After(queue.LeaseFor + time.Second)
		if got := texts(two.ask(with(event(schema.PostToolUse), id(2), 1))); !slices.Equal(got, []string{"text-1"}) {
			t.Errorf("%q came", got)
		}
	})
}

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

// TestALateSecondQuestionTakesAlongNothingThatIsAcknowledgedUnread checks a shim that got no answer
// and asks again. It gets the answer to the first question, and acknowledges it twice, because no
// broker confirmed the first acknowledgement.
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
		two.ask(with(event(schema.PostToolUse), eventID, 2)) // no client reads the answer
		for range 4 {                                        // a different broker may get each request
			two.request("ack.a", acknowledge)
		}
		<-time.After(queue.LeaseFor + time.Second)
		if got := texts(two.ask(with(event(schema.PostToolUse), id(2), 1))); !slices.Equal(got, []string{"text-1"}) {
			t.Errorf("%q came", got)
		}
	})
}

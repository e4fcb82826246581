package queue

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// inside opens a queue in a bubble, for a test that has to look at what is not shown.
func inside(t *testing.T, f func(*testing.T, *Queue)) {
	synctest.Test(t, func(t *testing.T) {
		js, err := jetstream.New(bustest.Connect(t, bustest.Start(t), "inside"))
		if err != nil {
			t.Fatal(err)
		}
		q, err := Open(t.Context(), js, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close(context.Background())
		f(t, q)
	})
}

func accept(t *testing.T, q *Queue, n uint64, matcher string) schema.Receipt {
	t.Helper()
	r, err := q.Enqueue(t.Context(), &schema.Item{
		Scope: schema.Scope{Agent: "a"}, Producer: "p", Number: n, Source: "x", Strategy: schema.ToolResult, Content: "text", Matcher: matcher,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnItemThatIsDeliveredDuringAWithdrawalIsNotWithdrawn(t *testing.T) {
	inside(t, func(t *testing.T, q *Queue) {
		accept(t, q, 1, "Other") // keeps the cursor from moving past what follows
		r := accept(t, q, 2, "")
		e, _, err := q.current(t.Context(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := q.Claim(t.Context(), &Claim{Routing: schema.Routing{Agent: "a", ID: "e1"}})
		if err != nil || len(got.Items) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := q.Ack(t.Context(), "a", []string{"e1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := q.Note(t.Context(), "a", "", func(p *schema.Peers) { p.VoteOnly = true }); err != nil { // says no more that it is done
			t.Fatal(err)
		}
		if answer, settled, err := q.withdraw(t.Context(), e); settled && answer.State == schema.Withdrawn {
			t.Errorf("%+v, %v", answer, err)
		}
		if answer, err := q.Withdraw(t.Context(), r.Key); err != nil || answer.State != schema.Delivered {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

func TestAnAgentIsForgottenWithItsCursor(t *testing.T) {
	inside(t, func(t *testing.T, q *Queue) {
		q.Seen("a", "", "")
		synctest.Wait()
		if q.agents.find("a") == nil {
			t.Fatal("it is not known")
		}
		if err := q.cursors.Store().Purge(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if q.agents.find("a") != nil {
			t.Error("it is never forgotten")
		}
		accept(t, q, 1, "")
		if got, err := q.Claim(t.Context(), &Claim{Routing: schema.Routing{Agent: "a", ID: "e1"}}); err != nil || len(got.Items) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

package aggregator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// Paths of an answer become longer where they are the receiver's.
func TestAnAnswerFullOfPathsIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		if _, failed := n.request("answer.a", `{"session":"s","content":"text-42 `+strings.Repeat("/w ", 600_000)+`","workspace":"/w"}`); failed != nil {
			t.Fatal(failed)
		}
		other := event(schema.PostToolUse)
		other.Subject = strings.Replace(other.Subject, ".a.", ".b.", 1)
		v := n.ask(with(other, id(2), 1))
		if len(v.Injections) == 0 {
			t.Errorf("%+v", v.HookErrors)
		}
	})
}

// TestWhatGrowsBeyondWhatCanBeSentIsCut checks that a text is cut if its rendering makes it many
// times longer. Otherwise it could never be sent.
func TestWhatGrowsBeyondWhatCanBeSentIsCut(t *testing.T) {
	bustest.PlainOnly(t, "how large texts are cut: one after the other")
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		for i := range 20 {
			body := fmt.Sprintf(`{"session":"s","content":"text-%d %s","workspace":"/w"}`, i, strings.Repeat("/w ", 40_000))
			if _, failed := n.request("answer.a", body); failed != nil {
				t.Fatal(failed)
			}
		}
		other := event(schema.PostToolUse)
		other.Subject = strings.Replace(other.Subject, ".a.", ".b.", 1)
		v := n.ask(with(other, id(2), 1))
		if len(v.Injections) != 1 || !strings.Contains(v.Injections[0].Content, "[cut") {
			t.Errorf("%d, %q", len(v.Injections), v.HookErrors)
		}
	})
}

// Its answer says everything twice: as one message and by its parts.
func TestDrainBringsNoMoreThanCanBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := join(t, bustest.Start(t), "one")
		for i := range 50 {
			n.inject(fmt.Sprintf("text-%d %s", i, strings.Repeat("x", 100_000)))
		}
		for i, got := 0, 0; got < 50; i++ {
			answer, failed := n.request("drain.a", `{"event_id":"`+id(i)+`"}`)
			var a schema.DrainAnswer
			if failed != nil || schema.Unmarshal([]byte(answer), &a) != nil || len(a.Injections) == 0 {
				t.Fatalf("after %d: %.200s %v", got, answer, failed)
			}
			got += len(texts(schema.Verdict{Injections: a.Injections}))
			n.request("ack.a", `{"fabric":"fabric-1","events":["`+id(i)+`"]}`)
		}
	})
}

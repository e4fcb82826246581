package builtin

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func limit(d time.Duration) *schema.Duration { return new(schema.Duration(d)) }

func TestTextsOfWarnings(t *testing.T) {
	d := stage[delivery](t, schema.RoundTimeoutPost, nil)
	minute, two := schema.Duration(time.Minute), schema.Duration(2*time.Minute)
	for name, it := range map[string]*schema.Item{
		"warning-initial": {TimeLimit: &schema.TimeLimit{Limit: limit(10 * time.Minute), Elapsed: 10*minute + 1, Grace: two}},
		"warning-voting":  {TimeLimit: &schema.TimeLimit{Round: 1, Limit: limit(0), Elapsed: 2 * minute, Terminal: []string{"vote", "new_answer", "stop"}}},
		"warning-wrapup":  {TimeLimit: &schema.TimeLimit{Round: 2, Elapsed: 3 * minute, Grace: minute, WrapUp: true, Terminal: []string{"submit"}}},
		"warning-text":    {Content: "half of the time is over"},
	} {
		t.Run(name, func(t *testing.T) {
			it.Sequence, it.Source = 1, schema.SourceTimeout
			r := &schema.Receiver{Round: &schema.Round{Start: 5}}
			it.Number = 5
			took := d.Choose(r, &schema.Peers{}, []*schema.Item{it, {Source: "human"}})
			golden(t, name, texts(d.Render(r, took).Injections))
		})
	}
}

// A late warning must not end the next round.
func TestAWarningOfAnEarlierRoundAsksForNothing(t *testing.T) {
	d := stage[delivery](t, schema.RoundTimeoutPost, nil)
	it := &schema.Item{Source: schema.SourceTimeout, Number: 4, TimeLimit: &schema.TimeLimit{Round: 3}}
	for start, want := range map[uint64]string{
		3: "TIME LIMIT REACHED", // the reader's node has not seen the next round
		4: "TIME LIMIT REACHED", 5: "is over",
	} {
		in := d.Render(&schema.Receiver{Round: &schema.Round{Start: start}}, []*schema.Item{it}).Injections
		if len(in) != 1 || !contains(in[0].Content, want) {
			t.Errorf("in the round that began at %d: %+v", start, in)
		}
	}
}

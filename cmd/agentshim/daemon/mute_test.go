package daemon

import "testing"

func TestALoopThatCanTellItsAgentNothingSaysSo(t *testing.T) {
	for query, mute := range map[string]bool{"": false, "?deliver=none": true, "?deliver=all": false} {
		w := atHTTP(t, &bench{})
		if code, said := w.post("/v1/events/QueryEnd"+query, `{"agent_id":"alice"}`, nil); code != 200 {
			t.Fatalf("%d %s", code, said)
		}
		if e := w.first(); e.Mute != mute {
			t.Errorf("%q: mute is %t", query, e.Mute)
		}
	}
}

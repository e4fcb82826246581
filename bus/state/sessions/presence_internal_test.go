package sessions

import (
	"strings"
	"testing"
)

// BenchmarkSeen is what an event costs here: of an agent of which everything is written, and
// of one that still waits to be written, which was in other sessions before.
func BenchmarkSeen(b *testing.B) {
	for name, changed := range map[string]bool{"written": false, "waiting": true} {
		b.Run(name, func(b *testing.B) {
			s := &Sessions{presence: &presence{waiting: make(chan string, 1), known: map[string]*seen{}}}
			for _, session := range []string{"s1", "s2", "s3", "s4"} {
				s.Seen("a", session)
			}
			k := s.presence.known["a"]
			k.queued, k.changed, k.written = true, changed, k.at
			b.ReportAllocs()
			for b.Loop() {
				s.Seen("a", "s4")
			}
		})
	}
}

// An agent that stays in its session has the same sessions before it, also where the name of
// the session is too long to be remembered as a whole.
func TestASessionIsNotBeforeItself(t *testing.T) {
	for name, session := range map[string]string{"a short one": "s2", "a long one": strings.Repeat("s", 2*maxField)} {
		known := overlay(overlay(Agent{}, Agent{Session: "s1"}), Agent{Session: session})
		if again := overlay(known, Agent{Session: session}); !again.same(known) || len(again.Earlier) != 1 || again.Earlier[0] != "s1" {
			t.Errorf("%s: before %q it was in %q", name, again.Session, again.Earlier)
		}
		if !overlay(known, Agent{Session: session, Ended: true}).Ended {
			t.Errorf("the end of %s is taken for another one's", name)
		}
		p := &presence{known: map[string]*seen{"a": {agent: known}}}
		p.known["a"].written = p.known["a"].written.AddDate(3000, 0, 0)
		if !p.knew("a", session) {
			t.Errorf("%s is taken for another one each time", name)
		}
	}
}

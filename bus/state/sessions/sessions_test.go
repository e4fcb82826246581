package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func open(t testing.TB, js jetstream.JetStream) *sessions.Sessions {
	t.Helper()
	s, err := sessions.Open(t.Context(), js, sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTheNamesOfSessionsLeaveAReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sessions.Open(t.Context(), bustest.JetStream(t, bustest.Start(t)), sessions.Options{Room: 1}) // which has the least: 1 MiB
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(context.Background()) }()
		if err := s.Room(t.Context(), 10); err != nil {
			t.Errorf("nothing is in it: %v", err)
		}
		for i := range 1000 {
			if _, err := s.Name(t.Context(), fmt.Sprint("invented-", i), "wild", ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Room(t.Context(), 10); !errors.Is(err, sessions.ErrNoRoom) || !strings.Contains(err.Error(), "--reserve") {
			t.Errorf("a tenth of it is taken: %v", err)
		}
		if err := s.Room(t.Context(), 75); err != nil {
			t.Errorf("three quarters are not: %v", err)
		}
	})
}

func TestAnswersAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		one, other := open(t, bustest.JetStream(t, srv)), open(t, bustest.JetStream(t, srv))
		for i, c := range []struct {
			session, agent, label string
			want                  string
			err                   error
			says                  string
		}{
			{"s", "x", "", "agent1.1", nil, ""},
			{"s", "y", "agent2.1", "agent2.1", nil, ""},
			{"s", "y", "agent2.1", "agent2.1", nil, ""},
			{"s", "y", "", "agent2.2", nil, ""},
			{"s", "y", "agent2.7", "agent2.7", nil, ""},
			{"s", "y", "", "agent2.8", nil, ""},
			{"s", "y", "agent2.2", "agent2.2", nil, ""},
			{"s", "z", "agent2.1", "", sessions.ErrTaken, "agent2 is another agent's"},
			{"s", "z", "Agent2.1", "", sessions.ErrTaken, "Agent2 is another agent's"},
			{"s", "y", "agent3.1", "", sessions.ErrTaken, "called agent2 in this session"},
			{"s", "z", "", "agent3.1", nil, ""},
			{"s", "x", "", "agent1.2", nil, ""},
			{"another one", "z", "", "agent1.1", nil, ""},
			{"s", "x", "agent1", "", sessions.ErrInvalid, "has no number"},
			{"s", "x", "agent1.0", "", sessions.ErrInvalid, "no number from 1"},
			{"s", "x", "a/b.1", "", sessions.ErrInvalid, "no word"},
			{"", "x", "", "", sessions.ErrInvalid, "session"},
			{"s", "", "", "", sessions.ErrInvalid, "agent"},
		} {
			s := []*sessions.Sessions{one, other}[i%2]
			got, err := s.Name(t.Context(), c.session, c.agent, c.label)
			name, _, _ := strings.Cut(c.want, ".")
			if got.Label != c.want || got.Name != name || !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s of %s as %q: %+v, %v", c.agent, c.session, c.label, got, err)
			}
		}
	})
}

// TestManyRaceForNames has the agents of several brokers race.
func TestManyRaceForNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		var brokers []*sessions.Sessions
		for range 8 {
			brokers = append(brokers, open(t, bustest.JetStream(t, srv)))
		}
		var mu sync.Mutex
		labels := map[string]string{}
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				agent := fmt.Sprint("coder", i%16)
				got, err := brokers[i%len(brokers)].Name(t.Context(), "s", agent, "")
				mu.Lock()
				defer mu.Unlock()
				if by, twice := labels[got.Label]; twice || err != nil {
					t.Errorf("%s and %s both gave %s: %v", agent, by, got.Label, err)
				}
				labels[got.Label] = agent
			})
		}
		all.Wait()
		for n := 1; n <= 16; n++ {
			by := labels[fmt.Sprintf("agent%d.1", n)]
			for a := 1; a <= 4; a++ {
				if got := labels[fmt.Sprintf("agent%d.%d", n, a)]; got == "" || got != by {
					t.Errorf("agent%d.%d is of %q, agent%d.1 of %q", n, a, got, n, by)
				}
			}
		}
	})
}

// seen lists who was seen, without when.
func seen(t testing.TB, s *sessions.Sessions) []sessions.Agent {
	t.Helper()
	synctest.Wait()
	all, err := s.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].LastSeen = time.Time{}
	}
	bustest.Settle()
	return all
}

// written counts what was written of agents.
func written(t testing.TB, js jetstream.JetStream) uint64 {
	t.Helper()
	synctest.Wait()
	s, err := js.Stream(t.Context(), "KV_"+sessions.AgentBucket)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

func TestAgentsAreListedForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		js := bustest.JetStream(t, srv)
		one, other := open(t, js), open(t, bustest.JetStream(t, srv))
		if got := seen(t, one); len(got) > 0 {
			t.Errorf("seen: %v", got)
		}
		began := time.Now()
		one.Describe(sessions.Agent{Agent: "an agent", Session: "s", Runtime: "generic", Version: "1.2", Host: "h"})
		one.Seen("b", "")
		synctest.Wait()
		<-time.After(9 * time.Minute)
		other.Seen("an agent", "s2") // a broker with less information removes nothing
		want := []sessions.Agent{{Agent: "an agent", Session: "s2", Earlier: []string{"s"}, Runtime: "generic", Version: "1.2", Host: "h"}, {Agent: "b"}}
		if diff := cmp.Diff(want, seen(t, one)); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		all, err := one.Agents(t.Context())
		if err != nil || len(all) != 2 || all[0].LastSeen.Sub(began) != 9*time.Minute || !all[1].LastSeen.Equal(began) {
			t.Errorf("%v, %v; it began at %v", all, err, began)
		}
		silent, _, err := one.Lately(t.Context(), "")
		if err != nil || len(silent) != 2 || silent[0].Agent != "b" || silent[0].Silent.Std().Truncate(time.Minute) != 9*time.Minute || silent[1].Silent.Std() > time.Minute {
			t.Errorf("%v, %v", silent, err)
		}
		if here, _, err := one.Lately(t.Context(), "h"); err != nil || len(here) != 1 || here[0].Agent != "an agent" || here[0].Version != "1.2" {
			t.Errorf("%v, %v", here, err)
		}
		<-time.After(24*time.Hour - 8*time.Minute)
		if diff := cmp.Diff(want[:1], seen(t, other)); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		one.Seen("b", "") // who was forgotten is seen again
		if diff := cmp.Diff(want, seen(t, other)); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
	})
}

// Silent agents come first in the list, and ended ones last.
func TestAnEndedAgentIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		one, other := open(t, bustest.JetStream(t, srv)), open(t, bustest.JetStream(t, srv))
		ends := func(agent, session string) sessions.Agent {
			return sessions.Agent{Agent: agent, Session: session, Ended: true}
		}
		one.Describe(sessions.Agent{Agent: "gone", Session: "s", Host: "h"})
		synctest.Wait()
		other.Describe(ends("gone", "s"))
		one.Describe(sessions.Agent{Agent: "moved", Session: "s2"})
		synctest.Wait()
		other.Describe(ends("moved", "s1")) // which is another one
		synctest.Wait()
		<-time.After(time.Hour)
		one.Seen("speaks", "s")
		one.Describe(ends("back", "s"))
		one.Seen("back", "s")
		synctest.Wait()
		all, crowded, err := one.Lately(t.Context(), "")
		if err != nil || crowded {
			t.Fatal(crowded, err)
		}
		var got []string
		for _, a := range all {
			got = append(got, fmt.Sprint(a.Agent, " ", a.Session, " ", a.Host, " ", a.Ended))
		}
		if diff := cmp.Diff([]string{"moved s2  false", "back s  false", "speaks s  false", "gone s h true"}, got); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		bustest.Settle()
	})
}

// In a full bucket a new agent replaces the one that has been silent the longest, and the list reports that.
func TestNewAgentsReplaceTheLongestSilentOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		bucket, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: sessions.AgentBucket, MaxBytes: 64 << 10, Storage: jetstream.MemoryStorage})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, js)
		for i := range 300 {
			s.Describe(sessions.Agent{Agent: fmt.Sprintf("a%03d", i), Host: strings.Repeat("h", 256)})
			synctest.Wait()
		}
		all, crowded, err := s.Lately(t.Context(), "")
		if err != nil || !crowded || len(all) < 50 || len(all) >= 300 || slices.ContainsFunc(all, func(a schema.AgentStatus) bool { return a.Agent == "a000" }) {
			t.Errorf("%d agents, crowded: %v, %v", len(all), crowded, err)
		}
		if _, err := bucket.Get(t.Context(), "a299"); err != nil {
			t.Errorf("the last: %v", err)
		}
		bustest.Settle()
	})
}

func TestAnAgentIsWrittenNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		for range 600 { // for ten minutes, each second
			s.Seen("a", "s")
			s.Describe(sessions.Agent{Agent: "a", Runtime: "generic"})
			<-time.After(time.Second)
		}
		// Once each two minutes, and once more for what it said at first.
		if n := written(t, js); n < 5 || n > 6 {
			t.Errorf("written %d times", n)
		}
		before := written(t, js)
		s.Seen("a", "s2")
		if n := written(t, js); n != before+1 {
			t.Errorf("a new session was written %d times", n-before)
		}
	})
}

// TestAnAgentOfManyBrokersIsWrittenAsOften has several brokers see the same agent, at the
// same moment and later.
func TestAnAgentOfManyBrokersIsWrittenAsOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		var brokers []*sessions.Sessions
		for range 8 {
			brokers = append(brokers, open(t, bustest.JetStream(t, srv)))
		}
		for range 40 { // for ten minutes
			for _, b := range brokers {
				b.Seen("a", "s")
			}
			<-time.After(15 * time.Second)
		}
		if n := written(t, bustest.JetStream(t, srv)); n < 5 || n > 6 {
			t.Errorf("written %d times", n)
		}
	})
}

// TestManyAgentsAreStored has more agents seen at once than may wait to be written.
func TestManyAgentsAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		for range 4 {
			var all sync.WaitGroup
			for i := range 3000 {
				all.Go(func() { s.Seen(fmt.Sprint("a", i), "s") })
			}
			all.Wait()
			synctest.Wait()
		}
		if n := written(t, js); n != 3000 {
			t.Errorf("written %d times", n)
		}
		if n := len(seen(t, s)); n != 3000 {
			t.Errorf("%d are listed", n)
		}
	})
}

func TestLongTextsAboutAnAgentAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, bustest.JetStream(t, bustest.Start(t)))
		s.Seen("", "s")
		s.Seen(strings.Repeat("x", 200), "s")
		s.Describe(sessions.Agent{Agent: "a", Host: strings.Repeat("h", 1<<20)})
		if got := seen(t, s); len(got) != 1 || len(got[0].Host) != 256 {
			t.Errorf("%d are listed", len(got))
		}
	})
}

func TestAFailedWriteIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		kv, err := js.Stream(t.Context(), "KV_"+sessions.AgentBucket)
		if err != nil {
			t.Fatal(err)
		}
		// Nothing can be stored, and then it can.
		config := kv.CachedInfo().Config
		config.MaxMsgSize = 1
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		s.Seen("a", "s")
		synctest.Wait()
		config.MaxMsgSize = -1
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		if got := seen(t, s); len(got) > 0 {
			t.Errorf("seen: %v", got)
		}
		s.Seen("a", "s")
		if got := seen(t, s); cmp.Diff([]sessions.Agent{{Agent: "a", Session: "s"}}, got) != "" {
			t.Errorf("seen: %v", got)
		}
	})
}

func TestAnAgentTakesPartWhereItWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		one, other := open(t, bustest.JetStream(t, srv)), open(t, bustest.JetStream(t, srv))
		takesPart := func(agent, session string, want bool) {
			t.Helper()
			for _, s := range []*sessions.Sessions{one, other} {
				if got, err := s.TakesPart(t.Context(), agent, session); err != nil || got != want {
					t.Errorf("%s in %s: %v, %v", agent, session, got, err)
				}
			}
		}
		for i := range 9 {
			one.Seen("a", fmt.Sprint("s", i))
			synctest.Wait()
		}
		other.Seen("a", "elsewhere")
		takesPart("a", "elsewhere", true)
		takesPart("a", "s8", true)
		takesPart("a", "s3", true)
		takesPart("a", "s0", false) // eight are remembered
		takesPart("a", "b's", false)
		if _, err := one.Name(t.Context(), "b's", "a", ""); err != nil {
			t.Fatal(err)
		}
		takesPart("a", "b's", true) // where it has a name
		takesPart("stranger", "s8", false)
		for id, want := range map[string]bool{"a": true, "stranger": false} {
			if is, err := other.IsAgent(t.Context(), id); err != nil || is != want {
				t.Errorf("%s: %v, %v", id, is, err)
			}
		}
		// What another broker is about to write is waited for.
		go func() {
			<-time.After(100 * time.Millisecond)
			one.Seen("late", "s")
		}()
		if in, err := other.TakesPart(t.Context(), "late", "s"); err != nil || !in {
			t.Errorf("%v, %v", in, err)
		}
	})
}

func TestReservedNamesAreThoseThatLookLikeThem(t *testing.T) {
	for label, want := range map[string]bool{
		"operator.1": true, "Operator.1": true, "operator": true, "operator_2.1": true, "OPERATORS-.3": true, "system.1": true, "round.9": true,
		"agent2.1": false, "operations.1": false, "": false, "1.1": false, "planner.1": false,
	} {
		if _, got := sessions.Reserved(label); got != want {
			t.Errorf("%q: %v", label, got)
		}
	}
}

func TestAStoppedServerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		js.Conn().Close()
		s.Seen("a", "s") // costs nothing, and says nothing
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, nerr := s.Name(ctx, "s", "a", "")
		_, aerr := s.Agents(ctx)
		if !errors.Is(nerr, sessions.ErrUnavailable) || !errors.Is(aerr, sessions.ErrUnavailable) {
			t.Errorf("Name: %v, Agents: %v", nerr, aerr)
		}
	})
}

func TestAnUnreadableRollIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		s := open(t, js)
		if _, err := js.Publish(t.Context(), "$KV."+sessions.Bucket+".s", []byte("junk")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Name(t.Context(), "s", "a", ""); !errors.Is(err, sessions.ErrUnavailable) || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("error %v", err)
		}
	})
}

// An alias that is counted is the id of no agent of the session, answered or not.
func TestAnAliasIsNoAgentsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		one := open(t, bustest.JetStream(t, srv))
		one.Seen("agent1", "t") // and has moved on
		one.Seen("agent1", "s")
		one.Seen("agent2", "s")
		one.Seen("agent3", "another session")
		synctest.Wait()
		other := open(t, bustest.JetStream(t, srv)) // it has seen no agent, and reads the list
		for _, step := range []struct {
			agent, session, want string
		}{{"agent2", "s", "agent3"}, {"writer", "s", "agent4"}, {"agent4", "s", "agent5"}, {"writer", "t", "agent2"}, {"writer", "u", "agent1"}} {
			for _, s := range []*sessions.Sessions{other, one} {
				got, err := s.Name(t.Context(), step.session, step.agent, "")
				if err != nil || got.Name != step.want {
					t.Errorf("%s in %s is %q, %v; want %q", step.agent, step.session, got.Name, err, step.want)
				}
			}
		}
	})
}

package record_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/record"
)

func TestTheStreamHasALimitOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, c := write(t, s, record.Options{Limits: record.Limits{Bytes: record.MinBytes}})
		const n = 30_000 // more than twice as much
		for i := range n {
			w.Put(verdict(i))
			if i%500 == 0 {
				<-time.After(time.Second)
			}
		}
		<-time.After(time.Second)
		is := info(t, s)
		if written, dropped := c.all(); written != n || dropped != 0 || is.State.Bytes > record.MinBytes || is.State.Bytes < record.MinBytes/2 {
			t.Errorf("%d written, %d dropped; the stream has %d bytes", written, dropped, is.State.Bytes)
		}
		_, ids := history(t, s, record.Span{})
		if len(ids) == 0 || len(ids) > n/2 || !slices.Equal(ids, numbered(n-len(ids), n)) {
			t.Errorf("%d records are kept, and not the newest", len(ids))
		}
		if st, err := record.Look(t.Context(), bustest.JetStream(t, s)); err != nil || !st.Lost || st.First.IsZero() {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

func TestTheStreamHasALimitOfAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		w, _ := write(t, s, record.Options{Limits: record.Limits{Age: record.MinAge}})
		w.Put(verdict(0))
		<-time.After(50 * time.Second)
		w.Put(verdict(1))
		<-time.After(time.Second)
		if _, ids := history(t, s, record.Span{}); !slices.Equal(ids, []string{"0", "1"}) {
			t.Errorf("%v", ids)
		}
		<-time.After(2 * time.Minute)
		if st, err := record.Look(t.Context(), bustest.JetStream(t, s)); err != nil || !st.Lost || !st.First.IsZero() {
			t.Errorf("%+v, %v", st, err)
		}
		if _, ids := history(t, s, record.Span{}); len(ids) != 0 {
			t.Errorf("%v", ids)
		}
	})
}

func info(t *testing.T, s *server.Server) *jetstream.StreamInfo {
	t.Helper()
	stream, err := bustest.JetStream(t, s).Stream(t.Context(), record.Name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo()
}

// A stream whose blocks the server packs, as they once were, is no longer packed twice.
func TestTheServerPacksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		c := jetstream.StreamConfig{Name: record.Name, Subjects: []string{"hook.v1.record.*"}, Compression: jetstream.S2Compression}
		if _, err := bustest.JetStream(t, s).CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		write(t, s, record.Options{})
		if c := info(t, s).Config; c.Compression != jetstream.NoCompression || c.MaxAge != record.DefaultAge {
			t.Errorf("%+v", c)
		}
	})
}

// Clients cannot delete records.
func TestTheLimitsOfTheLastStartedBrokerApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		write(t, s, record.Options{})
		first := info(t, s).Config
		if first.MaxAge != record.DefaultAge || first.MaxBytes != record.DefaultBytes || !first.DenyDelete || !first.DenyPurge {
			t.Errorf("%+v", first)
		}
		write(t, s, record.Options{Broker: "b2", Limits: record.Limits{Age: time.Hour, Bytes: 4 << 20}})
		if c := info(t, s).Config; c.MaxAge != time.Hour || c.MaxBytes != 4<<20 {
			t.Errorf("%+v", c)
		}
		stream, err := bustest.JetStream(t, s).Stream(t.Context(), record.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Purge(t.Context()); err == nil {
			t.Error("it was purged")
		}
	})
}

// Brokers that say different things do not undo each other's limits as long as they write.
func TestLimitsAreAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		first, _ := write(t, s, record.Options{Limits: record.Limits{Age: time.Hour, Bytes: 4 << 20}})
		write(t, s, record.Options{Broker: "b2", Limits: record.Limits{Age: 2 * time.Hour, Room: 16 << 20}})
		for i := range 10 {
			first.Put(verdict(i))
			<-time.After(time.Minute)
		}
		if c := info(t, s).Config; c.MaxAge != 2*time.Hour || c.MaxBytes != 4<<20 {
			t.Errorf("it keeps %d bytes for %v", c.MaxBytes, c.MaxAge)
		}
	})
}

// Where the disk is small the stream is, too.
func TestTheStreamTakesItsShareOfTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.StartWith(t, server.Options{MaxStore: 64 << 20})
		write(t, s, record.Options{Limits: record.Limits{Room: s.Room()}})
		if c := info(t, s).Config; c.MaxBytes != 8<<20 {
			t.Errorf("it takes %d bytes", c.MaxBytes)
		}
		write(t, s, record.Options{Broker: "b2", Limits: record.Limits{Bytes: 1 << 30}})
		if c := info(t, s).Config; c.MaxBytes != 8<<20 {
			t.Errorf("with more than there is it takes %d bytes", c.MaxBytes)
		}
	})
}

package kv_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { bustest.Main(m) }

const bucketName = "a_bucket"

// bucket makes a bucket on a new server.
func bucket(t *testing.T) (jetstream.JetStream, *kv.Bucket) {
	t.Helper()
	js, err := jetstream.New(bustest.Connect(t, bustest.Start(t), "test"))
	if err != nil {
		t.Fatal(err)
	}
	return js, open(t, js)
}

func config() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: bucketName, MaxBytes: 1 << 20, LimitMarkerTTL: time.Second, Storage: jetstream.FileStorage}
}

func open(t *testing.T, js jetstream.JetStream) *kv.Bucket {
	t.Helper()
	b, err := kv.Open(t.Context(), js, config(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// log holds the revisions that a mirror applied.
type log struct {
	mu   sync.Mutex
	said []string
}

func (l *log) apply(e kv.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, fmt.Sprintf("%d %s %s", e.Revision, e.Key, [...]string{string(e.Value), "deleted", "lapsed"}[e.Kind]))
}

// holds compares the applied revisions.
func (l *log) holds(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := cmp.Diff(want, l.said); d != "" {
		t.Error(d)
	}
}

func follow(t *testing.T, b *kv.Bucket, clock *kv.Clock) (*kv.Mirror, *log) {
	t.Helper()
	l := new(log)
	m, err := b.Follow(t.Context(), kv.MirrorOptions{Apply: l.apply, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, l
}

func write(t *testing.T, b *kv.Bucket, w kv.Write) uint64 {
	t.Helper()
	rev, err := b.Write(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func TestAMirrorAppliesEachRevisionOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := bucket(t)
		one := write(t, b, kv.Write{Key: "a", Value: []byte("one")})
		write(t, b, kv.Write{Key: "a", Value: []byte("two"), Last: one})
		write(t, b, kv.Write{Key: "b", Value: []byte("x"), TTL: 10 * time.Second})
		var clock kv.Clock
		m, l := follow(t, b, &clock)
		l.holds(t, "2 a two", "3 b x")
		write(t, b, kv.Write{Key: "a", Last: 2, Purge: true, TTL: time.Minute, Header: nats.Header{"X": {"y"}}})
		l.holds(t, "2 a two", "3 b x", "4 a deleted")
		<-time.After(11 * time.Second)
		l.holds(t, "2 a two", "3 b x", "4 a deleted", "5 b lapsed")
		if m.Revision() != 5 || m.Lag() != 0 {
			t.Errorf("at %d, behind for %v", m.Revision(), m.Lag())
		}
		if age := clock.Age(time.Now()); age > time.Second {
			t.Errorf("the server's clock is %v ahead", age)
		}
		e, err := b.Last(t.Context(), "a")
		if err != nil || e.Kind != kv.Deleted || e.Header.Get("X") != "y" || e.Revision != 4 {
			t.Errorf("%+v, %v", e, err)
		}
		<-time.After(time.Minute)
		if e, err := b.Last(t.Context(), "a"); err != nil || e.Revision != 0 {
			t.Errorf("a lapsed marker: %+v, %v", e, err)
		}
		write(t, b, kv.Write{Key: "a", Value: []byte("again")})
		late, ll := follow(t, b, nil)
		ll.holds(t, "6 a again")
		late.Close()
		write(t, b, kv.Write{Key: "a", Value: []byte("more"), Blind: true})
		ll.holds(t, "6 a again")
	})
}

func TestAMirrorReadsTheRevisionsThatASilentWatcherMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js, b := bucket(t)
		m, l := follow(t, b, nil)
		silence(t, js)
		write(t, b, kv.Write{Key: "a", Value: []byte("one")})
		write(t, b, kv.Write{Key: "b", Value: []byte("two")})
		l.holds(t)
		if err := m.Reach(t.Context(), 1); err != nil {
			t.Error(err)
		}
		l.holds(t, "1 a one")
		<-time.After(1500 * time.Millisecond)
		l.holds(t, "1 a one", "2 b two")
		write(t, b, kv.Write{Key: "c", Value: []byte("three")})
		l.holds(t, "1 a one", "2 b two", "3 c three")
		silence(t, js) // without missing revisions
		<-time.After(5 * time.Second)
		write(t, b, kv.Write{Key: "d", Value: []byte("four")})
		l.holds(t, "1 a one", "2 b two", "3 c three", "4 d four")
	})
}

// silence deletes the watchers' consumers, as a leader that stops does.
func silence(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	s, err := js.Stream(t.Context(), "KV_"+bucketName)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name := range s.ConsumerNames(t.Context()).Name() {
		if err := s.DeleteConsumer(t.Context(), name); err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d consumers follow the bucket", n)
	}
}

func TestAMirrorCatchesUpWithThousandsOfRevisionsAndWithGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := bucket(t)
		for i := range 3000 {
			write(t, b, kv.Write{Key: fmt.Sprint("k", i%1500), Value: []byte("v"), Blind: true})
		}
		last := write(t, b, kv.Write{Key: "k0", Blind: true, Purge: true, TTL: time.Second})
		<-time.After(2 * time.Second)
		m, l := follow(t, b, nil)
		synctest.Wait()
		if len(l.said) != 1499 || m.Revision() != last {
			t.Errorf("%d revisions up to %d; want 1499 up to %d", len(l.said), m.Revision(), last)
		}
	})
}

func TestALostCompareAndSetIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := bucket(t)
		write(t, b, kv.Write{Key: "a", Value: []byte("one")})
		for _, last := range []uint64{0, 7} {
			if _, err := b.Write(t.Context(), kv.Write{Key: "a", Last: last}); !kv.Refused(err) || kv.Passing(err) {
				t.Errorf("after %d: %v", last, err)
			}
		}
	})
}

func TestAMirrorDoesNotSkipFutureRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := bucket(t)
		write(t, b, kv.Write{Key: "a", Value: []byte("one")})
		m, l := follow(t, b, nil)
		if err := m.Reach(t.Context(), 3); err == nil {
			t.Error("it reached a revision that was never written")
		}
		write(t, b, kv.Write{Key: "b", Value: []byte("two")})
		l.holds(t, "1 a one", "2 b two")
	})
}

func TestAnIdleMirrorMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js, b := bucket(t)
		l := new(log)
		m, err := b.Follow(t.Context(), kv.MirrorOptions{
			Apply: l.apply, Clock: new(kv.Clock), MissedAfter: time.Minute,
			Missed: func() { l.apply(kv.Entry{Key: "missed"}) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		rev := write(t, b, kv.Write{Key: "a", Value: []byte("one")})
		<-time.After(10 * time.Minute)
		write(t, b, kv.Write{Key: "a", Value: []byte("two"), Last: rev})
		silence(t, js) // for a moment
		<-time.After(10 * time.Minute)
		write(t, b, kv.Write{Key: "b", Value: []byte("x"), Blind: true})
		l.holds(t, "1 a one", "2 a two", "3 b x")
	})
}

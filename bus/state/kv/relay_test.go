package kv_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A relay hands on what is asked of JetStream, but for what it is told to keep back.
type relay struct {
	keeps atomic.Pointer[func(asked *nats.Msg) bool]
	// three: what it hands back says that three servers keep the bucket.
	three atomic.Bool
}

// behind returns a JetStream that is asked by way of a relay.
func behind(t *testing.T, direct jetstream.JetStream) (jetstream.JetStream, *relay) {
	t.Helper()
	r := new(relay)
	return bustest.Between(t, direct, func(m *nats.Msg) bool {
		if keeps := r.keeps.Load(); keeps != nil && (*keeps)(m) {
			return true
		}
		if !r.three.Load() || !strings.Contains(m.Subject, "STREAM.INFO") {
			return false
		}
		if a, err := direct.Conn().Request(bustest.Beyond(m), m.Data, time.Second); err == nil {
			_ = m.Respond(bytes.Replace(a.Data, []byte(`"num_replicas":1`), []byte(`"num_replicas":3`), 1))
		}
		return true
	}), r
}

// A leader that leaves, and the one that comes, keep answers back, or say what is not so
// any more. Whatever it is: what was stored is told soon.
func TestAMirrorTellsWhatWasStoredWhileLeadersChange(t *testing.T) {
	const nothing = `{"error": {"code": 404, "err_code": 10037, "description": "no message found"}}`
	first := func(verb string) func(*nats.Msg) bool {
		asked := false
		return func(m *nats.Msg) bool {
			before := asked
			asked = asked || strings.Contains(m.Subject, verb)
			return asked && !before
		}
	}
	for name, keeps := range map[string]func(*nats.Msg) bool{
		"a question is never answered": first("STREAM.INFO"),
		"nobody makes watchers":        func(m *nats.Msg) bool { return strings.Contains(m.Subject, "CONSUMER.CREATE") },
		"one that left says that there is nothing": func() func(*nats.Msg) bool {
			is := first("STREAM.MSG.GET")
			return func(m *nats.Msg) bool {
				if !is(m) {
					return false
				}
				_ = m.Respond([]byte(nothing))
				return true
			}
		}(),
		"one that was cut off answers, too, for a second": func() func(*nats.Msg) bool {
			var until time.Time
			return func(m *nats.Msg) bool {
				if !strings.Contains(m.Subject, "STREAM.MSG.GET") {
					return false
				}
				if until.IsZero() {
					until = time.Now().Add(time.Second)
				}
				if time.Now().After(until) {
					return false
				}
				_ = m.Respond([]byte(nothing))
				return true
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js, b := bucket(t)
				far, r := behind(t, js)
				r.three.Store(true)
				_, l := follow(t, kv.At(far, bucketName), nil)
				silence(t, js)
				r.keeps.Store(&keeps)
				var want []string
				for _, one := range []string{"1 a x", "2 b x", "3 c x"} {
					write(t, b, kv.Write{Key: one[2:3], Value: []byte("x")})
					want = append(want, one)
					<-time.After(4500 * time.Millisecond)
					l.holds(t, want...)
				}
				bustest.Settle()
			})
		})
	}
}

// Where several servers keep a bucket it takes a while until it is believed that nothing is
// left, and no longer than that. One server alone is believed at once.
func TestAMirrorSkipsWhatIsGoneAndNoSooner(t *testing.T) {
	for three, want := range map[bool]time.Duration{false: 0, true: 2 * time.Second} {
		t.Run(fmt.Sprint(three), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js, b := bucket(t)
				far, r := behind(t, js)
				r.three.Store(three)
				write(t, b, kv.Write{Key: "a", Value: []byte("x")})
				last := write(t, b, kv.Write{Key: "b", Blind: true, Purge: true, TTL: time.Second})
				<-time.After(2 * time.Second)
				began := time.Now()
				m, l := follow(t, kv.At(far, bucketName), nil)
				if took := time.Since(began); took < want || took > want+time.Second || m.Revision() != last {
					t.Errorf("up to %d after %v; want %d after %v", m.Revision(), took, last, want)
				}
				l.holds(t, "1 a x")
			})
		})
	}
}

// What is missing is gone only if one server says so that knows of it: two may lead for a
// moment, and answer in turns.
func TestWhatOneOfTwoLeadersLacksIsNotGone(t *testing.T) {
	lacks := func(m *nats.Msg) bool {
		if !strings.Contains(m.Subject, "STREAM.MSG.GET") {
			return false
		}
		_ = m.Respond([]byte(`{"error": {"code": 404, "err_code": 10037, "description": "no message found"}}`))
		return true
	}
	for name, c := range map[string]struct {
		then func(t *testing.T, b *kv.Bucket, s jetstream.Stream)
		old  bool // leads, too, and answers who reads
		gone bool
	}{
		"there":                       {},
		"there, as one leader knows":  {old: true},
		"replaced":                    {then: replace, gone: true},
		"ended":                       {then: end, gone: true},
		"ended, as one leader knows":  {then: end, old: true},
		"not there":                   {then: remove, gone: true},
		"not there, as both say":      {then: remove, old: true, gone: true},
		"not there, and nothing else": {then: removeAll, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js, b := bucket(t)
				far, r := behind(t, js)
				left := kv.At(far, bucketName)
				revision := write(t, b, kv.Write{Key: "a", Value: []byte("x"), Blind: true})
				write(t, b, kv.Write{Key: "b", Value: []byte("y"), Blind: true})
				s, err := js.Stream(t.Context(), "KV_"+bucketName)
				if err != nil {
					t.Fatal(err)
				}
				if c.then != nil {
					c.then(t, b, s)
				}
				if c.old {
					r.keeps.Store(&lacks)
				}
				if err := left.Gone(t.Context(), "a", revision); (err == nil) != c.gone {
					t.Errorf("gone: %v, want %v", err, c.gone)
				}
				if err := left.Gone(t.Context(), "c", revision+100); err == nil {
					t.Error("what is to come is gone")
				}
			})
		})
	}
}

func replace(t *testing.T, b *kv.Bucket, _ jetstream.Stream) {
	t.Helper()
	write(t, b, kv.Write{Key: "a", Blind: true})
}

func end(t *testing.T, b *kv.Bucket, _ jetstream.Stream) {
	t.Helper()
	write(t, b, kv.Write{Key: "a", Blind: true, Purge: true})
}

// remove leaves nothing of the key, not even a marker.
func remove(t *testing.T, _ *kv.Bucket, s jetstream.Stream) {
	t.Helper()
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+bucketName+".a")); err != nil {
		t.Fatal(err)
	}
}

// removeAll leaves nothing at all.
func removeAll(t *testing.T, _ *kv.Bucket, s jetstream.Stream) {
	t.Helper()
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Who lists the keys and who is asked for them may not know the same.
func TestTheListOfKeysIsAsNewAsWhatIsReadByIt(t *testing.T) {
	const filter = "n.*"
	for name, c := range map[string]struct {
		behind int // so often a server lists the keys that knows only the first
		lacks  int // so often one is asked for them that knows none
		want   string
	}{
		"all know the same":              {0, 0, "n.a n.b"},
		"one that is behind lists them":  {1, 0, "n.a n.b"},
		"one that is behind always does": {100, 0, ""},
		"one that is behind is asked":    {0, 1, "n.a n.b"},
		"one that is behind always is":   {0, 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js, b := bucket(t)
				write(t, b, kv.Write{Key: "n.a", Value: []byte("x")})
				first, err := js.Conn().Request(jetstream.DefaultAPIPrefix+"STREAM.INFO.KV_"+bucketName, []byte(`{"subjects_filter": "$KV.`+bucketName+`.n.*"}`), time.Second)
				if err != nil {
					t.Fatal(err)
				}
				write(t, b, kv.Write{Key: "n.b", Value: []byte("x")})
				write(t, b, kv.Write{Key: "n.a", Value: []byte("y"), Blind: true})
				lists, lacks := c.behind, c.lacks
				far := bustest.Between(t, js, func(m *nats.Msg) bool {
					switch {
					case strings.Contains(m.Subject, "STREAM.INFO"):
						lists--
						if lists >= 0 {
							_ = m.Respond(first.Data)
						}
						return lists >= 0
					case strings.Contains(m.Subject, "STREAM.MSG.GET"):
						lacks--
						if lacks >= 0 {
							_ = m.Respond([]byte(`{"error": {"code": 404, "err_code": 10037, "description": "no message found"}}`))
						}
						return lacks >= 0
					}
					return false
				})
				all, err := kv.At(far, bucketName).Matching(t.Context(), filter)
				var keys []string
				for _, e := range all {
					keys = append(keys, e.Key)
				}
				if got := strings.Join(keys, " "); got != c.want || (err == nil) != (c.want != "") {
					t.Errorf("%q, %v; want %q", got, err, c.want)
				}
			})
		})
	}
}

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

// A relay passes requests to JetStream on, except those that a test holds back.
type relay struct {
	keeps atomic.Pointer[func(asked *nats.Msg) bool]
	// three makes the answers report three servers.
	three atomic.Bool
}

// behind returns a JetStream behind a relay.
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

// During a change of the leader requests get no answer, or an outdated one.
func TestAMirrorAppliesRevisionsSoonWhileLeadersChange(t *testing.T) {
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
		"a request is never answered": first("STREAM.INFO"),
		"watchers cannot be made":     func(m *nats.Msg) bool { return strings.Contains(m.Subject, "CONSUMER.CREATE") },
		"an old leader has no revisions": func() func(*nats.Msg) bool {
			is := first("STREAM.MSG.GET")
			return func(m *nats.Msg) bool {
				if !is(m) {
					return false
				}
				_ = m.Respond([]byte(nothing))
				return true
			}
		}(),
		"a leader that was cut off answers, too, for a second": func() func(*nats.Msg) bool {
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

// With several servers a mirror skips missing revisions after emptyFor, with one server at once.
func TestAMirrorSkipsMissingRevisionsInTime(t *testing.T) {
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

// Two servers may lead for a moment and answer in turns. A key is gone only if a server that had
// it reports that.
func TestAKeyThatOneOfTwoLeadersLacksIsNotGone(t *testing.T) {
	lacks := func(m *nats.Msg) bool {
		if !strings.Contains(m.Subject, "STREAM.MSG.GET") {
			return false
		}
		_ = m.Respond([]byte(`{"error": {"code": 404, "err_code": 10037, "description": "no message found"}}`))
		return true
	}
	for name, c := range map[string]struct {
		then func(t *testing.T, b *kv.Bucket, s jetstream.Stream)
		old  bool // leads, too, and answers reads
		gone bool
	}{
		"it exists":                          {},
		"it exists, and one leader lacks it": {old: true},
		"replaced":                           {then: replace, gone: true},
		"ended":                              {then: end, gone: true},
		"it ended, and one leader lacks it":  {then: end, old: true},
		"it is missing":                      {then: remove, gone: true},
		"it is missing at both":              {then: remove, old: true, gone: true},
		"the bucket is empty":                {then: removeAll, gone: true},
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
					t.Error("a future revision is gone")
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

// remove deletes the key without a marker.
func remove(t *testing.T, _ *kv.Bucket, s jetstream.Stream) {
	t.Helper()
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+bucketName+".a")); err != nil {
		t.Fatal(err)
	}
}

// removeAll deletes all keys without markers.
func removeAll(t *testing.T, _ *kv.Bucket, s jetstream.Stream) {
	t.Helper()
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The server that lists the keys and the one that returns them may have different states.
func TestTheListOfKeysIsAsNewAsTheNewestEntry(t *testing.T) {
	const filter = "n.*"
	for name, c := range map[string]struct {
		behind int // number of lists from a server with only the first key
		lacks  int // number of reads at a server without keys
		want   string
	}{
		"all servers are current":         {0, 0, "n.a n.b"},
		"an old server lists them once":   {1, 0, "n.a n.b"},
		"an old server always lists them": {100, 0, ""},
		"an old server is read once":      {0, 1, "n.a n.b"},
		"an old server is always read":    {0, 100, ""},
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

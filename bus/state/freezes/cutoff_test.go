package freezes_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
)

// A leader that was cut off and has not noticed it returns old freezes. A broker that was cut off with it must not accept
// them, because the others did not wait for it.
func TestABrokerDoesNotConfirmAtALeaderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		var old atomic.Bool
		behind := bustest.Between(t, js, func(m *nats.Msg) bool {
			switch {
			case old.Load() && strings.Contains(string(m.Data), "last_by_subj"):
				_ = m.Respond([]byte(`{"error": {"code": 404, "err_code": 10037, "description": "no message found"}}`))
				return true
			default:
				return old.Load() && strings.Contains(m.Subject, "CONSUMER.CREATE")
			}
		})
		left := open(t, behind)
		old.Store(true)
		stream, err := js.Stream(t.Context(), "KV_"+freezes.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		for c := range stream.ListConsumers(t.Context()).Info() {
			if err := stream.DeleteConsumer(t.Context(), c.Name); err != nil {
				t.Fatal(err)
			}
		}
		here := open(t, js)
		if _, err := here.Freeze(t.Context(), schema.Freeze{Agents: "a"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := left.Confirm(t.Context(), false); err != nil || standing(left) != "" {
			t.Fatalf("it is told by another leader: %q, %v", standing(left), err)
		}
		for range 100 {
			if err := left.Confirm(t.Context(), true); err != nil || standing(left) != "a" {
				t.Fatalf("%q, %v", standing(left), err)
			}
		}
		if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs != 2 {
			t.Errorf("beside one freeze much is kept to prove it: %+v, %v", info.State, err)
		}
		here.Close()
		left.Close()
		bustest.Settle()
	})
}

// told is what the leader says now of what is frozen.
func told(t *testing.T, js jetstream.JetStream) *nats.Msg {
	t.Helper()
	m, err := js.Conn().Request(jetstream.DefaultAPIPrefix+"STREAM.MSG.GET.KV_"+freezes.Bucket, []byte(`{"last_by_subj":"$KV.`+freezes.Bucket+`.freezes"}`), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What such a leader says that stands already may have been thawed by then.
func TestAFreezeIsNotConfirmedByALeaderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		var old atomic.Pointer[nats.Msg]
		behind := bustest.Between(t, js, func(m *nats.Msg) bool {
			o := old.Load()
			if o == nil || !strings.Contains(string(m.Data), "last_by_subj") {
				return false
			}
			_ = m.Respond(o.Data)
			return true
		})
		left, here := open(t, behind), open(t, js)
		z := schema.Freeze{Agents: "a"}
		if _, err := here.Freeze(t.Context(), z, nil); err != nil {
			t.Fatal(err)
		}
		if c, err := left.Freeze(t.Context(), z, nil); err != nil || c.Changed || c.Freeze.Agents != "a" {
			t.Fatalf("one that stands: %+v, %v", c, err)
		}
		old.Store(told(t, js))
		if _, err := here.Thaw(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if c, err := left.Freeze(ctx, z, nil); err == nil {
			t.Errorf("Freeze succeeds without an effect: %+v", c)
		}
		old.Store(nil)
		if c, err := left.Freeze(t.Context(), z, nil); err != nil || !c.Changed {
			t.Errorf("%+v, %v", c, err)
		}
		if err := here.Confirm(t.Context(), false); err != nil || standing(here) != "a" {
			t.Errorf("%q, %v", standing(here), err)
		}
		here.Close()
		left.Close()
		bustest.Settle()
	})
}

// Who was not answered has no proof that what he finds is his own.
func TestAnUnansweredFreezeIsNotConfirmedByALeaderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		var said atomic.Pointer[nats.Msg]
		var lost atomic.Bool
		left := open(t, bustest.Between(t, js, func(m *nats.Msg) bool {
			switch {
			case said.Load() == nil:
				return false
			case strings.HasSuffix(m.Subject, ".freezes") && !lost.Swap(true):
				return true // the request is lost
			case lost.Load() && strings.Contains(string(m.Data), "last_by_subj"):
				_ = m.Respond(said.Load().Data)
				return true
			}
			return false
		}))
		here := open(t, js)
		if _, err := here.Freeze(t.Context(), schema.Freeze{Agents: "a"}, nil); err != nil {
			t.Fatal(err)
		}
		old := told(t, js)
		if _, err := here.Thaw(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		said.Store(old)
		<-time.After(time.Second) // the new freeze differs from the old one
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if c, err := left.Freeze(ctx, schema.Freeze{Agents: "a"}, nil); err == nil || !lost.Load() {
			t.Errorf("Freeze succeeds without an effect: %+v", c)
		}
		here.Close()
		left.Close()
		bustest.Settle()
	})
}

// copies is what one of three says that keep the stream, of who leads it, and that it heard
// of the others so long ago.
func copies(t *testing.T, js jetstream.JetStream, leader string, ago time.Duration) []byte {
	t.Helper()
	m, err := js.Conn().Request(jetstream.DefaultAPIPrefix+"STREAM.INFO.KV_"+freezes.Bucket, nil, time.Second)
	if err != nil {
		t.Error(err)
		return nil
	}
	var info map[string]any
	if err := schema.Unmarshal(m.Data, &info); err != nil {
		t.Error(err)
		return nil
	}
	info["config"].(map[string]any)["num_replicas"] = 3
	info["cluster"] = map[string]any{"leader": leader, "replicas": []map[string]any{{"active": int64(ago)}, {"active": int64(ago)}}}
	said, err := schema.Marshal(info)
	if err != nil {
		t.Error(err)
	}
	return said
}

// A leader that can store nothing is believed, or a full disk would stop everybody, unless
// it has not heard of the others for so long that they may have another one.
func TestALeaderThatCanStoreNothingIsBelievedIfItLeads(t *testing.T) {
	for name, c := range map[string]struct {
		leader string
		heard  time.Duration
		leads  bool
	}{
		"heard of the others": {"n1", time.Second, true}, "cut off": {"n1", 5 * time.Second, false},
		"never heard of them": {"n1", 0, false}, "no leader": {"", time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := bustest.JetStream(t, bustest.Start(t))
				var full atomic.Bool
				left := open(t, bustest.Between(t, js, func(m *nats.Msg) bool {
					switch {
					case !full.Load():
						return false
					case strings.HasPrefix(bustest.Beyond(m), "$KV."):
						_ = m.Respond([]byte(`{"error": {"code": 503, "err_code": 10047, "description": "insufficient storage resources available"}, "stream": "KV_hook_freezes", "seq": 0}`))
					case strings.Contains(m.Subject, "STREAM.INFO"):
						_ = m.Respond(copies(t, js, c.leader, c.heard))
					default:
						return false
					}
					return true
				}))
				full.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // as for a lease
				defer cancel()
				if err := left.Confirm(ctx, true); (err == nil) != c.leads {
					t.Errorf("it leads: %v; %v", c.leads, err)
				}
				left.Close()
				bustest.Settle()
			})
		})
	}
}

// A restored data directory returns older freezes permanently and is accepted after a while. A leader that was cut off
// returns them for a while.
func TestOlderFreezesAreAcceptedFromAProvedLeader(t *testing.T) {
	for name, c := range map[string]struct {
		leader string
		heard  time.Duration
		want   string
	}{"came back from a copy": {"n1", time.Second, ""}, "cut off": {"n1", 20 * time.Second, "a"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := bustest.JetStream(t, bustest.Start(t))
				var older atomic.Bool
				left := open(t, bustest.Between(t, js, func(m *nats.Msg) bool {
					switch {
					case !older.Load():
						return false
					case strings.Contains(string(m.Data), "last_by_subj"):
						_ = m.Respond([]byte(`{"error": {"code": 404, "err_code": 10037, "description": "no message found"}}`))
					case strings.Contains(m.Subject, "STREAM.INFO"):
						_ = m.Respond(copies(t, js, c.leader, c.heard))
					default:
						return false
					}
					return true
				}))
				if _, err := left.Freeze(t.Context(), schema.Freeze{Agents: "a"}, nil); err != nil {
					t.Fatal(err)
				}
				older.Store(true)
				if _, err := left.Freeze(t.Context(), schema.Freeze{Agents: "b"}, nil); !errors.Is(err, freezes.ErrUnavailable) {
					t.Errorf("Freeze succeeds after a state that other brokers do not apply yet: %v", err)
				}
				for second := range 20 {
					if err := left.Confirm(t.Context(), false); err != nil {
						t.Fatal(err)
					}
					if now := standing(left); second < 15 && now != "a" {
						t.Fatalf("%q after %d s", now, second)
					}
					<-time.After(time.Second)
				}
				if now := standing(left); now != c.want {
					t.Errorf("%q, want %q", now, c.want)
				}
				left.Close()
				bustest.Settle()
			})
		})
	}
}

package state_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func open(t *testing.T, js jetstream.JetStream) *state.Configs {
	t.Helper()
	c, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// config returns a configuration with one hook of that name.
func config(name string) schema.Config {
	return schema.Config{Dir: "/etc/" + name, Hooks: []schema.Hook{{Name: name, Event: schema.PreToolUse, Type: schema.Builtin,
		Handler: "deny", Timeout: schema.DefaultTimeout, Pool: "default", Options: map[string]any{"n": 1}}}}
}

// publish proposes and activates a version; there must be no other proposer.
func publish(t *testing.T, c *state.Configs, cfg schema.Config, version uint64, changed bool) {
	t.Helper()
	v, same, err := c.Propose(t.Context(), cfg, state.Proposal{})
	if err != nil || v != version || same == changed {
		t.Errorf("Propose = %d, %v, %v; want %d, %v", v, same, err, version, !changed)
	}
	activate(t, c, v)
}

func propose(t *testing.T, c *state.Configs, name string, p state.Proposal) uint64 {
	t.Helper()
	v, same, err := c.Propose(t.Context(), config(name), p)
	if err != nil || same {
		t.Errorf("Propose %s = %d, %v, %v", name, v, same, err)
	}
	return v
}

func activate(t *testing.T, c *state.Configs, version uint64) {
	t.Helper()
	if err := c.Activate(t.Context(), version); err != nil {
		t.Error(err)
	}
}

func TestConfigsAreVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		if cur, err := c.Current(t.Context()); err != nil || cur.Version != 0 || len(cur.Hooks) != 0 {
			t.Errorf("before the first version: %+v, %v", cur, err)
		}
		publish(t, c, config("a"), 1, true)
		same := config("a")
		same.Version = 77
		publish(t, c, same, 1, false)
		publish(t, c, config("b"), 2, true)
		publish(t, c, config("a"), 3, true)
		want := config("b")
		want.Version, want.Hooks[0].Options = 2, map[string]any{"n": 1.0}
		got, err := c.Get(t.Context(), 2)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Error(err, d)
		}
		if cur, err := open(t, js).Current(t.Context()); err != nil || cur.Version != 3 || cur.Hooks[0].Name != "a" {
			t.Errorf("the active version: %+v, %v", cur, err)
		}
		elsewhere := config("a")
		elsewhere.Dir = "/elsewhere" // relative programs may differ
		publish(t, c, elsewhere, 4, true)
	})
}

func TestTheLastEightVersionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		for i := range 11 {
			publish(t, c, config(fmt.Sprint("c", i)), uint64(i+1), true)
		}
		for v := range uint64(13) {
			_, err := c.Get(t.Context(), v)
			if kept := v >= 4 && v <= 11; kept != (err == nil) || !kept && !errors.Is(err, state.ErrNoVersion) {
				t.Errorf("version %d: %v", v, err)
			}
		}
		kept, err := c.Versions(t.Context())
		if err != nil || len(kept) != state.HistoryConfigs || kept[0].Version != 11 || kept[7].Version != 4 || kept[0].Hooks != 1 {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

func TestTheBucketIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		s, err := js.Stream(t.Context(), "KV_"+state.ConfigBucket)
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		if cfg.Replicas != 1 || cfg.MaxBytes <= 0 || cfg.MaxMsgSize <= 0 || cfg.Storage != jetstream.FileStorage {
			t.Errorf("the bucket's stream is %+v", cfg)
		}
		big := config("big")
		big.Hooks[0].When = strings.Repeat("x", state.MaxConfig-500)
		publish(t, c, big, 1, true)
		if got, err := c.Current(t.Context()); err != nil || len(got.Hooks[0].When) != state.MaxConfig-500 {
			t.Errorf("a large configuration: %v", err)
		}
		big.Hooks[0].When = strings.Repeat("x", state.MaxConfig)
		if _, _, err := c.Propose(t.Context(), big, state.Proposal{}); !errors.Is(err, state.ErrTooLarge) || !strings.Contains(err.Error(), "at most 8128 KiB") {
			t.Errorf("a configuration too large: %v", err)
		}
	})
}

func TestAFabricHasOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := bustest.JetStream(t, s)
		ids := make([]string, 8)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				c, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = c.FabricID()
			})
		}
		all.Wait()
		if len(slices.Compact(ids)) != 1 || uuid.Validate(ids[0]) != nil {
			t.Errorf("the fabric's ids are %q", ids)
		}
	})
}

// A bucket that lost its first messages must not look like a new fabric, because shims would drop
// what is missing in it.
func TestALostFabricIDIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		open(t, js)
		stream, err := js.Stream(t.Context(), "KV_"+state.ConfigBucket)
		if err == nil {
			err = stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+state.ConfigBucket+".fabric"))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
		if err == nil || !strings.Contains(err.Error(), "was deleted or lost, and others are there; delete the whole bucket") {
			t.Errorf("error %v", err)
		}
	})
}

func TestADeletedFabricIDIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		open(t, js)
		kv, err := js.KeyValue(t.Context(), state.ConfigBucket)
		if err != nil {
			t.Fatal(err)
		}
		if err := kv.Delete(t.Context(), "fabric"); err != nil {
			t.Fatal(err)
		}
		_, err = state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
		if err == nil || !strings.Contains(err.Error(), "delete the whole bucket") {
			t.Errorf("error %v", err)
		}
	})
}

func TestABucketThatCannotHoldLeasesIsRejected(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"it has no TTL": 0, "its markers live longer than a lease": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				js := bustest.JetStream(t, bustest.Start(t))
				if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: state.ConfigBucket, LimitMarkerTTL: ttl}); err != nil {
					t.Fatal(err)
				}
				_, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
				if err == nil || !strings.Contains(err.Error(), "set the marker TTL to 10s") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestEqualProposersAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		var all sync.WaitGroup
		var mu sync.Mutex
		changes, versions := 0, map[uint64]bool{}
		for range 8 {
			all.Go(func() {
				v, same := insist(t, c, config("same"))
				mu.Lock()
				defer mu.Unlock()
				if versions[v] = true; !same {
					changes++
				}
			})
		}
		all.Wait()
		if changes != 1 || len(versions) != 1 {
			t.Errorf("%d changes, versions %v", changes, versions)
		}
	})
}

// insist proposes until it is the only proposer, and activates its version.
func insist(t *testing.T, c *state.Configs, cfg schema.Config) (version uint64, same bool) {
	for {
		v, same, err := c.Propose(t.Context(), cfg, state.Proposal{})
		if _, ok := errors.AsType[*state.Busy](err); ok {
			<-time.After(time.Millisecond)
			continue
		}
		if err != nil {
			t.Error(err)
		} else if !same {
			activate(t, c, v)
		}
		return v, same
	}
}

package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// ConfigBucket is the bucket of the configuration. Its keys are `current`,
// which names the active version and the proposed one, `v.<n>`, the versions,
// `node.<id>`, the leases of the brokers, and `fabric`, the fabric's id. Brokers tell
// workers what the versions say, so there is nothing secret in them.
const ConfigBucket = "hook_config"

// The bounds of the configuration's bucket.
const (
	// MaxConfig is the largest configuration, as JSON.
	MaxConfig = schema.MaxEvent
	// KeptConfigs is how many versions nodes hold on to, the active one
	// included, beside the one that is proposed.
	KeptConfigs = 3
	// HistoryConfigs is how many versions the bucket keeps, the active one
	// included, to look at and to go back to.
	HistoryConfigs = 8

	// All versions that are kept, one proposal, and one left over; the rest is
	// room for all other keys.
	maxConfigBytes = (HistoryConfigs + 2) * schema.MaxPayload
	configHistory  = 16
	// markersFor is how long it shows that a version was deleted, lapsedFor that
	// a lease lapsed. No key of a bucket lives shorter than its lapsed markers.
	markersFor = 24 * time.Hour
	lapsedFor  = 10 * time.Second
)

const (
	currentKey = "current"
	fabricKey  = "fabric"
)

// ErrNoVersion says that a version does not exist, or no longer.
var ErrNoVersion = errors.New("there is no such config version")

// ErrUnreadable says that a version is there, but makes no sense.
var ErrUnreadable = errors.New("cannot be read")

// ConfigOptions say how the configuration is kept.
type ConfigOptions struct {
	// Replicas of the bucket; one that is there gets more, but never less; 0 is 1.
	Replicas int
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Configs are the versions of the fabric's configuration. Each is written once
// and never changed; at most one of them is proposed, one of them is active.
type Configs struct {
	js       jetstream.JetStream
	bucket   *kv.Bucket
	kv       jetstream.KeyValue
	log      *slog.Logger
	replicas int
	keys     atomic.Pointer[kv.Bucket] // see Seed; nil: it was not opened yet
	fabric   atomic.Pointer[string]
	named    atomic.Pointer[pointer] // the pointer as it was read last; nil: it was not
	// watched says that a Watch is on, which takes the questions of Confirm.
	watched   atomic.Bool
	questions chan chan<- error
	stored    storedVersions
}

// OpenConfigs makes the configuration's bucket, or opens the one that is
// there. It waits for a JetStream that is still starting.
func OpenConfigs(ctx context.Context, js jetstream.JetStream, o ConfigOptions) (*Configs, error) {
	b, err := kv.Open(ctx, js, bucket(max(o.Replicas, 1)), 0)
	if err != nil {
		return nil, err
	}
	c := newConfigs(js, b, b.Store(), o)
	id, err := c.ensureFabric(ctx)
	if err != nil {
		return nil, err
	}
	c.fabric.Store(&id)
	return c, nil
}

func bucket(replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: ConfigBucket, Description: "the configuration of the hook fabric",
		Replicas: replicas, Storage: jetstream.FileStorage, History: configHistory,
		MaxBytes: maxConfigBytes, MaxValueSize: schema.MaxPayload, LimitMarkerTTL: lapsedFor,
	}
}

func newConfigs(js jetstream.JetStream, b *kv.Bucket, store jetstream.KeyValue, o ConfigOptions) *Configs {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Configs{js: js, bucket: b, kv: store, log: log, replicas: max(o.Replicas, 1), questions: make(chan chan<- error)}
}

// FabricID is the id of the fabric, a UUID made with its buckets: a new data
// directory is a new fabric.
func (c *Configs) FabricID() string { return *c.fabric.Load() }

// ensureFabric returns the fabric's id. Of all who come at once, one makes it.
func (c *Configs) ensureFabric(ctx context.Context) (string, error) {
	id, mine := "", uuid.NewString()
	err := kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		e, err := c.bucket.Last(ctx, fabricKey)
		if err != nil {
			return false, err
		}
		if e.Revision > 0 && e.Kind == kv.Put {
			id = string(e.Value)
			return true, nil
		}
		fresh := e.Revision == 0
		if fresh {
			fresh, err = c.fresh(ctx)
		}
		if id = mine; err != nil || !fresh {
			return err == nil, cmp.Or(err, errNoFabric)
		}
		_, err = c.bucket.Write(ctx, kv.Write{Key: fabricKey, Value: []byte(id)})
		if kv.Refused(err) {
			return false, nil // somebody else makes it
		}
		return err == nil, err
	})
	switch {
	case errors.Is(err, errNoFabric):
		return "", fmt.Errorf("%w; delete the whole bucket to start a new fabric", err)
	case err != nil:
		return "", fmt.Errorf("reading or making the fabric's id: %w", err)
	}
	return id, nil
}

// fresh reports whether nothing was ever stored in the bucket but perhaps the fabric's id,
// which is stored before everything else: where the rest is without it, part of the
// bucket was lost.
func (c *Configs) fresh(ctx context.Context) (bool, error) {
	info, err := c.bucket.Info(ctx)
	if err != nil || info.Last == 0 {
		return err == nil, err
	}
	e, err := c.bucket.Last(ctx, fabricKey) // another broker may just have made it
	return e.Revision > 0, err
}

// errNoFabric says that the fabric's id was taken away.
var errNoFabric = fmt.Errorf("the fabric's id can be neither read nor made: the key %s of the bucket %s was deleted or lost, and others are there", fabricKey, ConfigBucket)

func versionKey(n uint64) string { return "v." + strconv.FormatUint(n, 10) }

// Get returns a version, active or not, or [ErrNoVersion] if it does not exist any more. On a
// cluster a version that is milliseconds old may not be found yet.
func (c *Configs) Get(ctx context.Context, version uint64) (schema.Config, error) {
	data, err := c.read(ctx, version)
	if err != nil {
		return schema.Config{}, err
	}
	return parseVersion(data, version)
}

// read returns a version as it is stored.
func (c *Configs) read(ctx context.Context, version uint64) ([]byte, error) {
	e, err := c.kv.Get(ctx, versionKey(version))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("config version %d: %w", version, ErrNoVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("reading config version %d: %w", version, err)
	}
	return e.Value(), c.genuine(version, e.Value())
}

// genuine refuses what is stored of a version that is not what was proposed, as far as the
// pointer that was read last says what that was.
func (c *Configs) genuine(version uint64, data []byte) error {
	p := c.named.Load()
	if p == nil {
		return nil
	}
	if want, is := p.digest(version), digestOf(data); want != "" && is != want {
		return fmt.Errorf("config version %d %w: what is stored is not what was proposed, its SHA-256 is %.12s… and not %.12s…; apply the configuration again", version, ErrUnreadable, is, want)
	}
	return nil
}

// parseVersion reads what is stored of a version.
func parseVersion(data []byte, version uint64) (schema.Config, error) {
	var cfg schema.Config
	if err := schema.Unmarshal(data, &cfg); err != nil {
		return schema.Config{}, fmt.Errorf("config version %d %w; was it written by a newer release? %w", version, ErrUnreadable, err)
	}
	cfg.Version = version
	return cfg, nil
}

// Current returns the active version; before anything was published, the zero
// Config, which has no hooks.
func (c *Configs) Current(ctx context.Context) (schema.Config, error) {
	for i := range kv.Attempts {
		p, _, err := c.pointer(ctx)
		if err != nil || p.Version == 0 {
			return schema.Config{}, err
		}
		cfg, err := c.Get(ctx, p.Version)
		if !errors.Is(err, ErrNoVersion) {
			return cfg, err
		}
		if err := kv.Again(ctx, i); err != nil {
			return schema.Config{}, err
		}
	}
	return schema.Config{}, fmt.Errorf("the active config version: %w; it was deleted from the bucket %s", ErrNoVersion, ConfigBucket)
}

// Versions tells of the versions that are kept, the active one first.
func (c *Configs) Versions(ctx context.Context) ([]schema.VersionInfo, error) {
	p, _, err := c.pointer(ctx)
	return p.Kept, err
}

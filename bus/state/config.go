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

// ConfigBucket is the bucket of the configuration. Its keys are `current`, which names the active
// and the proposed version, `v.<n>` for the versions, `node.<id>` for the leases of brokers, and
// `fabric` for the fabric's id. Brokers send versions to workers, so they contain no secrets.
const ConfigBucket = "hook_config"

// The limits of the configuration's bucket.
const (
	// MaxConfig is the largest configuration, as JSON.
	MaxConfig = schema.MaxEvent
	// KeptConfigs is how many versions nodes keep besides the proposed one, including the active one.
	KeptConfigs = 3
	// HistoryConfigs is how many versions the bucket keeps for inspection and rollback, including the
	// active one.
	HistoryConfigs = 8

	// The bucket fits all kept versions, a proposal, a discarded one, and all other keys.
	maxConfigBytes = (HistoryConfigs + 2) * schema.MaxPayload
	configHistory  = 16
	// markersFor is the TTL of the marker of a deleted version, lapsedFor that of a lapsed lease.
	// No key of the bucket may have a shorter TTL than lapsedFor.
	markersFor = 24 * time.Hour
	lapsedFor  = 10 * time.Second
)

const (
	currentKey = "current"
	fabricKey  = "fabric"
)

// ErrNoVersion means that a version does not exist, or was deleted.
var ErrNoVersion = errors.New("there is no such config version")

// ErrUnreadable means that a version exists but cannot be parsed.
var ErrUnreadable = errors.New("cannot be read")

// ConfigOptions configure the bucket.
type ConfigOptions struct {
	// Replicas of the bucket; an existing bucket can get more, never fewer; 0: 1.
	Replicas int
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// Configs are the versions of the fabric's configuration. A version never changes. At most one is
// proposed, and one is active.
type Configs struct {
	js       jetstream.JetStream
	bucket   *kv.Bucket
	kv       jetstream.KeyValue
	log      *slog.Logger
	replicas int
	keys     atomic.Pointer[kv.Bucket] // see Seed; nil: not opened yet
	fabric   atomic.Pointer[string]
	named    atomic.Pointer[pointer] // the last pointer that was read; nil: none yet
	// watched is true while a Watch runs, which receives from questions.
	watched   atomic.Bool
	questions chan chan<- error
}

// OpenConfigs creates or opens the bucket of the configuration. It waits for a JetStream that is
// starting.
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
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Configs{js: js, bucket: b, kv: store, log: log, replicas: max(o.Replicas, 1), questions: make(chan chan<- error)}
}

// FabricID returns the id of the fabric, a UUID that was made with its buckets. A new data directory
// is a new fabric.
func (c *Configs) FabricID() string { return *c.fabric.Load() }

// ensureFabric returns the fabric's id. Of several concurrent callers one makes it.
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
			return false, nil // another broker has written it
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

// fresh reports whether the bucket has had no key except the fabric's id. The id is written first, so
// other keys without it mean that part of the bucket was lost.
func (c *Configs) fresh(ctx context.Context) (bool, error) {
	info, err := c.bucket.Info(ctx)
	if err != nil || info.Last == 0 {
		return err == nil, err
	}
	e, err := c.bucket.Last(ctx, fabricKey) // another broker may just have made it
	return e.Revision > 0, err
}

// errNoFabric means that the fabric's id was deleted.
var errNoFabric = fmt.Errorf("the fabric's id can be neither read nor made: the key %s of the bucket %s was deleted or lost, and others are there", fabricKey, ConfigBucket)

func versionKey(n uint64) string { return "v." + strconv.FormatUint(n, 10) }

// Get returns a version, active or not, or [ErrNoVersion]. In a cluster a version may be missing for
// some milliseconds after it was written.
func (c *Configs) Get(ctx context.Context, version uint64) (schema.Config, error) {
	data, err := c.read(ctx, version)
	if err != nil {
		return schema.Config{}, err
	}
	return parseVersion(data, version)
}

// read returns the stored bytes of a version.
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

// genuine returns an error if stored bytes differ from those that were proposed. It can check only
// versions whose digest the last pointer has.
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

// parseVersion parses the stored bytes of a version.
func parseVersion(data []byte, version uint64) (schema.Config, error) {
	var cfg schema.Config
	if err := schema.Unmarshal(data, &cfg); err != nil {
		return schema.Config{}, fmt.Errorf("config version %d %w; was it written by a newer release? %w", version, ErrUnreadable, err)
	}
	cfg.Version = version
	return cfg, nil
}

// Current returns the active version; before the first one, the zero Config, which has no hooks.
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

// Versions describes the kept versions, the active one first.
func (c *Configs) Versions(ctx context.Context) ([]schema.VersionInfo, error) {
	p, _, err := c.pointer(ctx)
	return p.Kept, err
}

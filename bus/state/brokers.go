package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// askFor bounds a request to brokers.
const askFor = 5 * time.Second

// Follow is [Configs.Watch] for nodes that may not read the bucket: brokers send them its content,
// and announce changes. Without an answer nothing changes here. It ends as Watch does.
func Follow(ctx context.Context, nc *nats.Conn, log *slog.Logger, use func(Update)) error {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	subject, err := bus.ControlSubject(schema.VerbFollow, "")
	if err != nil {
		return err
	}
	changes := make(chan struct{}, 1)
	sub, err := nc.Subscribe(bus.ConfigChanged, func(*nats.Msg) {
		select {
		case changes <- struct{}{}:
		default: // a read is pending already
		}
	})
	if err != nil {
		return fmt.Errorf("listening for changes of the configuration: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may be closed already
	f := follower{from: brokers{nc, subject}, log: log, use: use}
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-again.C:
		}
		again.Reset(f.again(ctx))
		if errors.Is(f.failed, nats.ErrConnectionClosed) {
			return fmt.Errorf("following the configuration: %w", f.failed)
		}
	}
}

// brokers is a source that any broker answers, with [Configs.Tell].
type brokers struct {
	nc      *nats.Conn
	subject string
}

func (b brokers) ask(ctx context.Context, req *schema.FollowRequest, answer any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, askFor, fmt.Errorf("no broker answered on %s within %s", b.subject, askFor))
	defer cancel()
	err := bus.Insist(ctx, b.nc, b.subject, req, answer)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

func (b brokers) standing(ctx context.Context, _ string, _ uint64) (s schema.Standing, err error) {
	if err = b.ask(ctx, &schema.FollowRequest{}, &s); err == nil && s.Fabric == "" {
		err = fmt.Errorf("the answer on %s names no fabric", b.subject)
	}
	return s, err
}

// version reads a version in parts.
func (b brokers) version(ctx context.Context, fabric string, n uint64) (schema.Config, error) {
	var data []byte
	for {
		var part schema.FetchAnswer
		err := b.part(ctx, &schema.FollowRequest{Fabric: fabric, Version: n, Offset: int64(len(data))}, &part)
		if err != nil {
			return schema.Config{}, err
		}
		data = append(data, part.Data...)
		switch size := int64(len(data)); {
		case size == part.Size:
			return parseVersion(data, n)
		case len(part.Data) == 0 || size > min(part.Size, schema.MaxPayload):
			return schema.Config{}, fmt.Errorf("config version %d: a broker says that it has %d bytes, and tells %d of them", n, part.Size, size)
		}
	}
}

// part requests a part of a version, and repeats that while brokers are overloaded.
func (b brokers) part(ctx context.Context, req *schema.FollowRequest, part *schema.FetchAnswer) error {
	for i := 0; ; i++ {
		err := b.ask(ctx, req, part)
		refused, ok := errors.AsType[*schema.ControlError](err)
		if !ok {
			return err
		}
		switch refused.Code {
		case schema.CodeNotFound:
			return fmt.Errorf("config version %d: %w", req.Version, ErrNoVersion)
		case schema.CodeConflict:
			return fmt.Errorf("config version %d: %w", req.Version, ErrMoved)
		}
		if refused.Code != schema.CodeUnavailable || i == 5 || kv.Again(ctx, i) != nil {
			return err
		}
	}
}

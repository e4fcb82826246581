package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
	"github.com/hookfabric/hookfabric/workers"
)

// ReadConfig reads a hooks.yaml with everything that can be checked without a
// fabric: its form, its matchers and its conditions.
func ReadConfig(path string) (*hooksyaml.Document, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return checkConfig(path, data)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads one byte more than a hooks.yaml may have at most, by which
// its reader knows that it is too large.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, hooksyaml.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return data, nil
}

// checkConfig is [ReadConfig] for the text of a file.
func checkConfig(path string, data []byte) (*hooksyaml.Document, error) {
	compiler, err := cond.NewCompiler()
	if err != nil {
		return nil, err
	}
	doc, err := hooksyaml.Read(path, data, hooksyaml.Options{CheckCondition: func(expr string) error {
		_, err := compiler.Compile(expr)
		return err
	}})
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("finding the configuration's folder: %w", err)
	}
	doc.Config.Dir = dir
	return doc, nil
}

// readConfig reads the file the broker was started with; nil: there is none.
func (b *Broker) readConfig() (*schema.Config, error) {
	if b.opt.Config == "" {
		return nil, nil
	}
	doc, err := ReadConfig(b.opt.Config)
	if err != nil {
		return nil, err
	}
	for _, w := range doc.Warnings {
		b.log.Warn("configuration", "warning", w.String())
	}
	return &doc.Config, nil
}

// follow publishes cfg, if there is one, and takes over every version that
// becomes active, from whichever broker. It returns when the first is in use:
// only then are events taken.
func (b *Broker) follow(ctx context.Context, cfg *schema.Config) error {
	if cfg == nil {
		current, err := b.configs.Current(ctx)
		if err != nil {
			return err
		}
		if current.Version == 0 {
			cfg = &schema.Config{} // a new fabric: no hooks
		}
	}
	if cfg != nil {
		if _, _, err := b.configs.Publish(ctx, *cfg); err != nil {
			return err
		}
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	first, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		var active *schema.Config
		err := b.configs.Watch(watching, func(u state.Update) {
			if u.Active == nil || u.Active == active {
				return
			}
			active = u.Active
			err := b.activate(*active)
			if err != nil {
				b.log.Error("configuration can not be used; the one before stays", "version", active.Version, "error", err)
			}
			offer(first, err)
		})
		if err != nil && watching.Err() == nil {
			b.log.Error("the configuration is not followed any more", "error", err)
			offer(first, err)
		}
	}()
	b.stack.Push("configuration", func(context.Context) error { stop(); <-ended; return nil })
	select {
	case err := <-first:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("waiting for the configuration: %w", context.Cause(ctx))
	case <-time.After(30 * time.Second):
		return fmt.Errorf("no configuration came within 30 s: is JetStream healthy?")
	}
	return b.attachWorker()
}

func offer(ch chan error, err error) {
	select {
	case ch <- err:
	default:
	}
}

// activate loads a version into the worker before calls are pinned to it.
func (b *Broker) activate(cfg schema.Config) error {
	if b.worker != nil {
		b.worker.Load(cfg)
	}
	if err := b.agg.Activate(cfg); err != nil {
		return err
	}
	b.log.Info("configuration active", "version", cfg.Version, "hooks", len(cfg.Hooks))
	return nil
}

// attachWorker puts the worker on the bus, for the other brokers.
func (b *Broker) attachWorker() error {
	if b.worker == nil {
		return nil
	}
	svc, err := workers.Attach(b.work, b.worker)
	if err != nil {
		return err
	}
	b.service = svc
	return nil
}

package aggregator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// configureTime bounds one request about the configuration: nodes load it, and
// one that was cut off is waited for.
const configureTime = 2 * patience

// Configure serves a request about the configuration.
func (a *Aggregator) Configure(ctx context.Context, req *schema.ConfigRequest) (*schema.ConfigAnswer, error) {
	if a.opt.Configs == nil {
		return nil, &schema.ControlError{Code: schema.CodeUnavailable, Message: "this broker does not store the configuration"}
	}
	switch req.Action {
	case schema.ActionApply:
		return a.Apply(ctx, &File{Name: req.File, Dir: req.Dir, Text: req.Source, Note: "applied " + filepath.Base(req.File), Force: req.Force})
	case schema.ActionShow:
		return a.show(ctx, req.Version)
	case schema.ActionHistory:
		history, err := a.opt.Configs.Versions(ctx)
		return &schema.ConfigAnswer{Version: a.Version(), History: history}, err
	case schema.ActionRollback:
		return a.rollback(ctx, req)
	}
	return nil, badRequest("config has no action %q; use %s, %s, %s or %s",
		req.Action, schema.ActionApply, schema.ActionShow, schema.ActionHistory, schema.ActionRollback)
}

// A File is a hooks.yaml that is to become the active version.
type File struct {
	// Name is for messages. Dir is where handlers are looked up.
	Name, Dir string
	// Text is the content of the file.
	Text string
	// Note is the note in the history.
	Note string
	// Force continues although handlers cannot be loaded.
	Force bool
	// AtOnce does not wait for workers, as when a broker starts and has no beat of them yet. They
	// load the version once it is active.
	AtOnce bool
	// Alone refuses a file that differs from the active version while other brokers live, because
	// they answer by the active version.
	Alone bool
	// First changes nothing where some version is active already.
	First bool
}

// Apply makes a file the active version. Hooks that were registered at run time stay.
func (a *Aggregator) Apply(ctx context.Context, f *File) (*schema.ConfigAnswer, error) {
	var warnings []string
	done, err := a.change(ctx, func(before *schema.Config) (application, error) {
		if f.First && before.Version > 0 {
			return application{cfg: *before}, nil
		}
		doc, err := a.read(f, before)
		if err != nil {
			return application{}, err
		}
		warnings = nil
		for _, w := range doc.Warnings {
			warnings = append(warnings, w.String())
		}
		app := application{cfg: withRegistered(&doc.Config, before), note: f.Note, force: f.Force, atOnce: f.AtOnce}
		if f.Alone {
			err = a.alone(ctx, f, before, &app.cfg)
		}
		return app, err
	})
	if err == nil && !done.refused && !f.AtOnce {
		warnings = append(warnings, a.unserved()...)
	}
	return answerTo(done, warnings), err
}

// unserved lists the pools of the active version that no worker serves.
func (a *Aggregator) unserved() (all []string) {
	for _, p := range a.Status().Pools {
		if len(p.Workers) == 0 {
			all = append(all, fmt.Sprintf("no worker serves the pool %q; its hooks fail until a worker does", p.Pool))
		}
	}
	return all
}

// alone refuses a configuration that would replace one that other brokers use.
func (a *Aggregator) alone(ctx context.Context, f *File, before, next *schema.Config) error {
	if before.Version == 0 {
		return nil
	}
	same, err := state.Same(before, next)
	if same || err != nil {
		return err
	}
	others, err := a.Others(ctx)
	if len(others) == 0 || err != nil {
		return err
	}
	return conflict(fmt.Sprintf("%s differs from version %d, which %s use; start without --config and apply the file (broker apply %s), or start with --replace",
		f.Name, before.Version, strings.Join(others, ", "), f.Name))
}

// read reads a file, in which no hook may have the name of one that was
// registered at run time.
func (a *Aggregator) read(f *File, before *schema.Config) (*hooksyaml.Document, error) {
	doc, err := hooksyaml.Read(f.Name, []byte(f.Text), a.readOptions(func(name string) bool {
		i := named(before.Hooks, name)
		return i >= 0 && before.Hooks[i].Registered
	}))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	doc.Config.Dir = f.Dir
	return doc, nil
}

// rollback makes an earlier version's content the active version, unchanged.
func (a *Aggregator) rollback(ctx context.Context, req *schema.ConfigRequest) (*schema.ConfigAnswer, error) {
	if req.Version == 0 {
		return nil, badRequest("version is missing; name one that config history lists")
	}
	cfg, err := a.kept(ctx, req.Version)
	if err != nil {
		return nil, err
	}
	done, err := a.change(ctx, func(*schema.Config) (application, error) {
		return application{cfg: cfg, note: fmt.Sprintf("rolled back to %d", req.Version), force: req.Force}, nil
	})
	return answerTo(done, nil), err
}

func (a *Aggregator) show(ctx context.Context, version uint64) (*schema.ConfigAnswer, error) {
	if version == 0 {
		version = a.Version()
	}
	cfg, err := a.kept(ctx, version)
	if err != nil {
		return nil, err
	}
	return &schema.ConfigAnswer{Version: version, Config: &cfg, Text: string(hooksyaml.Write(&cfg))}, nil
}

func (a *Aggregator) kept(ctx context.Context, version uint64) (schema.Config, error) {
	cfg, err := a.opt.Configs.Get(ctx, version)
	if errors.Is(err, state.ErrNoVersion) {
		return cfg, &schema.ControlError{Code: schema.CodeNotFound, Message: fmt.Sprintf(
			"config version %d is not stored; name one that config history lists", version)}
	}
	return cfg, err
}

// change makes an application from the active version and spreads it. If another change came
// between, it makes the application again. A change waits for its turn only once. An invalid change
// fails at once.
func (a *Aggregator) change(ctx context.Context, make func(before *schema.Config) (application, error)) (applied, error) {
	ctx, cancel := context.WithTimeout(ctx, configureTime)
	defer cancel()
	ctx, stop := a.whileStorable(ctx)
	defer stop()
	done, err := a.changeOnce(ctx, make)
	return done, a.explained(err)
}

// changeOnce repeats the work of [Aggregator.change] until it succeeds or ctx ends.
func (a *Aggregator) changeOnce(ctx context.Context, make func(before *schema.Config) (application, error)) (applied, error) {
	for mine := false; ctx.Err() == nil; mine = true {
		before, err := a.opt.Configs.Current(ctx)
		if err != nil {
			return applied{}, err
		}
		app, err := make(&before)
		if err != nil {
			return applied{}, err
		}
		app.base = before.Version
		if !mine {
			if err := a.await(ctx); err != nil {
				return applied{}, err
			}
			defer func() { <-a.config.turn }()
		}
		done, err := a.spread(ctx, app)
		if errors.Is(err, state.ErrTooLarge) {
			return done, badRequest("%v", err)
		}
		if !errors.Is(err, state.ErrMoved) {
			return done, err
		}
	}
	return applied{}, conflict("other changes of the configuration were faster; try again")
}

// await waits for the turn to spread a configuration: each process spreads one
// at a time.
func (a *Aggregator) await(ctx context.Context) error {
	select {
	case a.config.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return conflict("another change of the configuration is in progress; try again")
	}
}

func answerTo(done applied, warnings []string) *schema.ConfigAnswer {
	return &schema.ConfigAnswer{
		Version: done.version, Changed: done.changed, Refused: done.refused, Problems: told(done.problems), Warnings: warnings,
	}
}

// follow returns the state of the configuration to workers, or the content of a version.
func (a *Aggregator) follow(ctx context.Context, agent string, req *schema.FollowRequest) (any, error) {
	switch {
	case agent != "":
		return nil, badRequest("the configuration is not of one agent; send the request to hook.v1.ctl.%s._", schema.VerbFollow)
	case a.opt.Configs == nil:
		return nil, unavailable("this broker does not store the configuration")
	}
	return a.opt.Configs.Tell(ctx, req)
}

// readOptions returns the options for reading a hooks.yaml.
func (a *Aggregator) readOptions(taken func(name string) bool) hooksyaml.Options {
	opt := hooksyaml.Options{Taken: taken}
	if a.opt.Conditions != nil {
		opt.CheckCondition = func(expr string) error {
			_, err := a.opt.Conditions(expr)
			return err
		}
	}
	return opt
}

func badRequest(format string, args ...any) error {
	return &schema.ControlError{Code: schema.CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}

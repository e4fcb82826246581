package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// configureTime bounds one request about the configuration: nodes load it, and
// one that was cut off is waited for.
const configureTime = 2 * patience

// configure serves a request about the configuration.
func (c *Control) configure(ctx context.Context, _ string, req *schema.ConfigRequest) (*schema.ConfigAnswer, error) {
	if c.opt.Configs == nil {
		return nil, noConfigs()
	}
	switch req.Action {
	case schema.ActionApply:
		return c.Apply(ctx, &File{Name: req.File, Dir: req.Dir, Text: req.Source, Files: req.Files, Note: "applied " + filepath.Base(req.File), Force: req.Force})
	case schema.ActionShow:
		return c.show(ctx, req.Version)
	case schema.ActionHistory:
		history, err := c.opt.Configs.Versions(ctx)
		return &schema.ConfigAnswer{Version: c.Version(), History: history}, err
	case schema.ActionRollback:
		return c.rollback(ctx, req)
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
	// Files are the files of rules that it names, by these names.
	Files map[string]string
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
func (c *Control) Apply(ctx context.Context, f *File) (*schema.ConfigAnswer, error) {
	var warnings []string
	done, err := c.change(ctx, func(before *schema.Config) (application, error) {
		if f.First && before.Version > 0 {
			return application{cfg: *before}, nil
		}
		doc, err := c.read(f, before)
		if err != nil {
			return application{}, err
		}
		warnings = nil
		for _, w := range doc.Warnings {
			warnings = append(warnings, w.String())
		}
		app := application{cfg: withRegistered(&doc.Config, before), note: f.Note, force: f.Force, atOnce: f.AtOnce}
		if f.Alone {
			err = c.alone(ctx, f, before, &app.cfg)
		}
		return app, err
	})
	if err == nil && !done.refused && !f.AtOnce {
		warnings = append(warnings, c.unserved()...)
	}
	return answerTo(done, warnings), err
}

// unserved lists the pools of the active version that no worker serves.
func (c *Control) unserved() (all []string) {
	for _, p := range c.Status().Pools {
		if len(p.Workers) == 0 {
			all = append(all, fmt.Sprintf("no worker serves the pool %q; its hooks fail until a worker does", p.Pool))
		}
	}
	return all
}

// alone refuses a configuration that would replace one that other brokers use.
func (c *Control) alone(ctx context.Context, f *File, before, next *schema.Config) error {
	if before.Version == 0 {
		return nil
	}
	same, err := state.Same(before, next)
	if same || err != nil {
		return err
	}
	others, err := c.others(ctx)
	if len(others) == 0 || err != nil {
		return err
	}
	return conflict("%s differs from version %d, which %s use; start without --config and apply the file (broker apply %s), or start with --replace",
		f.Name, before.Version, strings.Join(others, ", "), f.Name)
}

// read reads a file, in which no hook may have the name of one that was
// registered at run time.
func (c *Control) read(f *File, before *schema.Config) (*hooksyaml.Document, error) {
	doc, err := hooksyaml.Read(f.Name, []byte(f.Text), c.readOptions(f.Files, func(name string) bool {
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
func (c *Control) rollback(ctx context.Context, req *schema.ConfigRequest) (*schema.ConfigAnswer, error) {
	if req.Version == 0 {
		return nil, badRequest("version is missing; name one that config history lists")
	}
	cfg, err := c.storedConfig(ctx, req.Version)
	if err != nil {
		return nil, err
	}
	done, err := c.change(ctx, func(*schema.Config) (application, error) {
		return application{cfg: cfg, note: fmt.Sprintf("rolled back to %d", req.Version), force: req.Force}, nil
	})
	return answerTo(done, nil), err
}

func (c *Control) show(ctx context.Context, version uint64) (*schema.ConfigAnswer, error) {
	if version == 0 {
		version = c.Version()
	}
	cfg, err := c.storedConfig(ctx, version)
	if err != nil {
		return nil, err
	}
	return &schema.ConfigAnswer{Version: version, Config: &cfg, Text: string(hooksyaml.Write(&cfg))}, nil
}

func (c *Control) storedConfig(ctx context.Context, version uint64) (schema.Config, error) {
	cfg, err := c.opt.Configs.Get(ctx, version)
	if errors.Is(err, state.ErrNoVersion) {
		return cfg, notFound("config version %d is not stored; name one that config history lists", version)
	}
	return cfg, err
}

// change makes an application from the active version and spreads it. If another change came
// between, it makes the application again. A change waits for its turn only once. An invalid change
// fails at once.
func (c *Control) change(ctx context.Context, make func(before *schema.Config) (application, error)) (done applied, err error) {
	ctx, cancel := context.WithTimeout(ctx, configureTime)
	defer cancel()
	ctx, stop := c.whileStorable(ctx)
	defer stop()
	defer func() { err = c.explained(err) }()
	for mine := false; ctx.Err() == nil; mine = true {
		before, err := c.opt.Configs.Current(ctx)
		if err != nil {
			return applied{}, err
		}
		app, err := make(&before)
		if err != nil {
			return applied{}, err
		}
		app.base = before.Version
		if !mine {
			select {
			case c.turn <- struct{}{}: // each process spreads one at a time
				defer func() { <-c.turn }()
			case <-ctx.Done():
				return applied{}, conflict("another change of the configuration is in progress; try again")
			}
		}
		done, err := c.spread(ctx, app)
		if errors.Is(err, state.ErrTooLarge) {
			return done, badRequest("%v", err)
		}
		if !errors.Is(err, state.ErrMoved) {
			return done, err
		}
	}
	return applied{}, conflict("other changes of the configuration were faster; try again")
}

func answerTo(done applied, warnings []string) *schema.ConfigAnswer {
	return &schema.ConfigAnswer{
		Version: done.version, Changed: done.changed, Refused: done.refused, Problems: limitProblems(done.problems), Warnings: warnings,
	}
}

// follow returns the state of the configuration to workers, or the content of a version.
func (c *Control) follow(ctx context.Context, _ string, req *schema.FollowRequest) (any, error) {
	if c.opt.Configs == nil {
		return nil, noConfigs()
	}
	return c.opt.Configs.Tell(ctx, req)
}

// readOptions returns the options for reading a hooks.yaml.
func (c *Control) readOptions(files map[string]string, taken func(name string) bool) hooksyaml.Options {
	opt := hooksyaml.Options{Taken: taken, CheckExpression: c.opt.Expressions, Packs: c.opt.Packs, Now: time.Now()}
	opt.ReadFile = func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, errors.New("it was not sent with the configuration")
		}
		return []byte(text), nil
	}
	if c.opt.Conditions != nil {
		opt.CheckCondition = func(expr string) error {
			_, err := c.opt.Conditions(expr)
			return err
		}
	}
	return opt
}

// An answer has to fit into a message, and people have to read it, while each
// node of a fleet may lack each program of a file.
const (
	// maxOfNode bounds the problems that an answer lists of one node. After maxProblems, the answer
	// lists no further node.
	maxOfNode   = 20
	maxProblems = 400
	// maxProblem bounds the bytes of one problem.
	maxProblem = 1 << 10
)

// limitProblems returns the problems that an answer lists: some of each node, and how many more there are.
// The problems of a node must be adjacent.
func limitProblems(all []schema.Problem) []schema.Problem {
	var some []schema.Problem
	for len(all) > 0 {
		node := all[0].Node
		if len(some) >= maxProblems {
			return append(some, schema.Problem{Node: node, Error: fmt.Sprintf("this and %d more problems, of this node and others, are not listed", len(all)-1)})
		}
		n := slices.IndexFunc(all, func(p schema.Problem) bool { return p.Node != node })
		if n < 0 {
			n = len(all)
		}
		for _, p := range all[:min(n, maxOfNode)] {
			p.Error = strings.ToValidUTF8(p.Error[:min(len(p.Error), maxProblem)], "")
			some = append(some, p)
		}
		if n > maxOfNode {
			some = append(some, schema.Problem{Node: node, Error: fmt.Sprintf("%d more problems of this node are not listed", n-maxOfNode)})
		}
		all = all[n:]
	}
	return some
}

// The results for a part of a conversation, as labels in metrics.
const (
	partStored  = "stored"
	partKnown   = "known"
	partUnknown = "unknown"
	partRefused = "refused"
)

// PartResults returns all of them.
func PartResults() []string { return []string{partStored, partKnown, partUnknown, partRefused} }

// keepPart stores a part of an agent's conversation in the store of histories, or reports whether
// the part is stored. That store has bounds of its own. When it is full, items for agents still
// find room.
func (c *Control) keepPart(ctx context.Context, agent string, req *schema.KeepRequest) (*schema.KeepAnswer, error) {
	store := c.opt.Histories
	switch {
	case store == nil:
		c.opt.Report.Metrics.Histories.WithLabelValues(partRefused).Inc()
		return nil, unavailable("this broker does not store conversations")
	case len(req.Data) > schema.MaxPart:
		return nil, badRequest("data has %d bytes, and a part at most %d; split the conversation into more parts", len(req.Data), schema.MaxPart)
	case len(req.Data) == 0 && req.Digest == "":
		return nil, badRequest("data and digest are missing; send data to store a part, or digest to ask for one")
	case len(req.Data) == 0:
		return c.known(ctx, agent, schema.Object{Digest: req.Digest, Size: req.Size})
	case !c.histories.Take(agent, int64(len(req.Data)), time.Now()):
		c.opt.Report.Metrics.Histories.WithLabelValues(partRefused).Inc()
		c.opt.Limits.Refused(agent, intake.LimitHistory)
		return nil, unavailable("the agent stored %d MiB of conversations within %s through one broker, which is its limit (--agent-history-bytes); "+
			"store only new parts", c.histories.Most>>20, c.histories.Per)
	}
	o, err := store.Put(ctx, bytes.NewReader(req.Data))
	if err != nil {
		c.histories.Refund(agent, int64(len(req.Data)))
		c.unstoredPart(agent, err)
		return nil, err
	}
	c.opt.Report.Metrics.Histories.WithLabelValues(partStored).Inc()
	c.opt.Report.Log.Reachable(observe.HistoryStore)
	if req.Digest != "" && req.Digest != o.Digest {
		return nil, badRequest("the digest of data is %s, and the request says %.80q; send the digest of data", o.Digest, req.Digest)
	}
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: true}, nil
}

// known reports whether a part is stored for long enough to be named.
func (c *Control) known(ctx context.Context, agent string, o schema.Object) (*schema.KeepAnswer, error) {
	fresh, err := c.opt.Histories.Fresh(ctx, o)
	if err != nil {
		c.unstoredPart(agent, err)
		return nil, err
	}
	result := partUnknown
	if fresh {
		result = partKnown
	}
	c.opt.Report.Metrics.Histories.WithLabelValues(result).Inc()
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: fresh}, nil
}

// maxPartAnswer is how much of a part one answer carries: as much as a NATS server accepts by default.
const maxPartAnswer = 512 << 10

// storedPart reads a part of a conversation, for the workers. Only a worker that received an event
// with its digest can name the part.
func (c *Control) storedPart(ctx context.Context, _ string, req *schema.PartRequest) (*schema.FetchAnswer, error) {
	store := c.opt.Histories
	if store == nil {
		return nil, unavailable("this broker does not store conversations")
	}
	data, size, err := store.Part(ctx, req.Digest, req.Offset)
	if err != nil {
		return nil, err
	}
	return &schema.FetchAnswer{Data: data[:min(len(data), maxPartAnswer)], Size: size}, nil
}

// unstoredPart counts a part that could not be stored, and logs the failure once.
func (c *Control) unstoredPart(agent string, err error) {
	c.opt.Report.Metrics.Histories.WithLabelValues(partRefused).Inc()
	c.opt.Logger.Debug("cannot store a part of a conversation", "agent", agent, "error", err)
	c.opt.Report.Log.Unreachable(observe.HistoryStore, err)
}

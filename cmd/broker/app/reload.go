package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// retryAfter is how long a fabric that failed is left alone.
const retryAfter = 5 * time.Second

// maxTold bounds how many faults one log line tells of.
const maxTold = 20

// hangups are the process's SIGHUPs, from now on until stop: none of them ends
// the process.
func hangups() (signals <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGHUP)
	return ch, func() { signal.Stop(ch) }
}

// reloadOptions are what a reloader needs.
type reloadOptions struct {
	// Path is the hooks.yaml; empty: there is none, and SIGHUP does nothing.
	Path string
	// Hangup asks to apply the file whether it has changed or not, as SIGHUP
	// does; nil: nobody asks.
	Hangup <-chan os.Signal
	// Apply makes a file without faults the active version, unless the answer says
	// that nothing changed, or that it was refused. An error of the code
	// bad_request is a refusal, too; after any other the same file is applied again
	// a little later.
	Apply func(context.Context, *aggregator.File) (*schema.ConfigAnswer, error)
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// A reloader applies a broker's own hooks.yaml again when it changes. A file
// that is faulty or refused changes nothing.
type reloader struct {
	opt     reloadOptions
	log     *slog.Logger
	metrics *reloadMetrics
	// seen is what the file said last time; retry is due if that is still to be
	// applied. Both are run's alone.
	seen  fingerprint
	retry *time.Timer
}

// A fingerprint tells two contents of a file apart, or why there is none.
type fingerprint struct {
	sum [sha256.Size]byte
	err string
}

// newReloader notes what the file says. Make it before the file is read for the
// start of the broker, so that no change between the two is missed.
func newReloader(opt reloadOptions) *reloader {
	r := &reloader{opt: opt, log: opt.Logger, metrics: newReloadMetrics(opt.Registerer), retry: time.NewTimer(0)}
	r.retry.Stop()
	if opt.Path != "" {
		_, r.seen, _ = r.read()
		r.log = r.log.With("file", opt.Path)
	}
	return r
}

// reloads is the broker's reloader; nil: its file is read once.
func (b *Broker) reloads() *reloader {
	if b.opt.Reload == nil {
		return nil
	}
	return newReloader(reloadOptions{
		Path: b.opt.Config, Hangup: b.opt.Reload, Registerer: b.reg, Logger: b.log,
		Apply: func(ctx context.Context, f *aggregator.File) (*schema.ConfigAnswer, error) {
			return b.agg.Apply(ctx, f)
		},
	})
}

// startReloads has r run until the broker stops.
func (b *Broker) startReloads(ctx context.Context, r *reloader) {
	if r == nil {
		return
	}
	b.beside(ctx, "reloads", r.run)
}

// run applies the file whenever it has changed, until ctx ends.
func (r *reloader) run(ctx context.Context) {
	changes := make(chan struct{})
	var watching sync.WaitGroup
	defer watching.Wait()
	if r.opt.Path != "" {
		watching.Go(func() {
			watchFile(ctx, r.opt.Path, func() {
				select {
				case changes <- struct{}{}:
				case <-ctx.Done():
				}
			})
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.opt.Hangup:
			r.hangup(ctx)
		case <-changes:
			r.look(ctx)
		case <-r.retry.C:
			r.reload(ctx)
		}
	}
}

func (r *reloader) hangup(ctx context.Context) {
	if r.opt.Path == "" {
		r.log.Info("SIGHUP has no effect: the broker was started without --config; use 'broker apply'")
		return
	}
	r.reload(ctx)
}

// look applies the file if it says something else than last time.
func (r *reloader) look(ctx context.Context) {
	if _, now, _ := r.read(); now != r.seen { // why it cannot be read is part of now
		r.reload(ctx)
	}
}

func (r *reloader) read() ([]byte, fingerprint, error) {
	data, err := readFile(r.opt.Path)
	if err != nil {
		return nil, fingerprint{err: err.Error()}, err
	}
	return data, fingerprint{sum: sha256.Sum256(data)}, nil
}

// reload applies the file as it is.
func (r *reloader) reload(ctx context.Context) {
	r.retry.Stop()
	file, err := r.file()
	if err != nil {
		r.log.Error("the configuration file has faults; the active version stays", "faults", inOneLine(err))
		r.metrics.count(reloadBadFile)
		return
	}
	answer, err := r.opt.Apply(ctx, file)
	if err != nil && ctx.Err() != nil {
		return // the broker stops
	}
	r.metrics.count(r.told(answer, err))
}

// file is what there is to apply, if it has no faults.
func (r *reloader) file() (*aggregator.File, error) {
	data, now, err := r.read()
	r.seen = now
	if err != nil {
		return nil, err
	}
	return toApply(r.opt.Path, data, "reloaded ")
}

// told logs what came of a reload and names it.
func (r *reloader) told(answer *schema.ConfigAnswer, err error) reloadResult {
	switch {
	case lasting(err):
		r.log.Error("the configuration file was rejected; the active version stays", "error", err)
		return reloadRefused
	case err != nil:
		r.log.Error("the configuration file could not be applied; the broker tries again", "after", retryAfter, "error", err)
		r.retry.Reset(retryAfter)
		return reloadFailed
	case answer.Refused && passing(answer.Problems):
		r.log.Error("the configuration file could not be applied; the broker tries again", "after", retryAfter, "problems", joined(problems(answer)))
		r.retry.Reset(retryAfter)
		return reloadFailed
	case answer.Refused:
		r.log.Error("the configuration file was rejected; the active version stays", "version", answer.Version, "problems", joined(problems(answer)))
		return reloadRefused
	case !answer.Changed:
		r.log.Info("the configuration file has the content of the active version; nothing changed", "version", answer.Version)
		return reloadUnchanged
	}
	r.log.Info("configuration file applied", "version", answer.Version)
	return reloadOK
}

// passing reports whether no node named a handler that it cannot load: some only
// did not say anything in time.
func passing(all []schema.Problem) bool {
	return !slices.ContainsFunc(all, func(p schema.Problem) bool { return p.Hook != "" })
}

// lasting reports errors that the same file would meet again.
func lasting(err error) bool {
	ce, ok := errors.AsType[*schema.ControlError](err)
	return ok && ce.Code == schema.CodeBadRequest
}

// inOneLine says what is wrong with a file on one line, without its source.
func inOneLine(err error) string {
	faults, ok := errors.AsType[hooksyaml.Faults](err)
	if !ok {
		return err.Error()
	}
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Error()
	}
	return joined(lines)
}

// joined is many sentences as one, bounded.
func joined(sentences []string) string {
	if more := len(sentences) - maxTold; more > 0 {
		sentences = append(sentences[:maxTold:maxTold], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(sentences, " | ")
}

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

	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// retryAfter is the delay before a failed reload is tried again.
const retryAfter = 5 * time.Second

// maxLoggedFaults bounds the faults in one log line.
const maxLoggedFaults = 20

// hangups returns the SIGHUPs of the process until stop. They no longer end the process.
func hangups() (signals <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGHUP)
	return ch, func() { signal.Stop(ch) }
}

// reloadOptions configure a reloader.
type reloadOptions struct {
	// Path is the hooks.yaml; empty: SIGHUP does nothing.
	Path string
	// Hangup applies the file even if it has not changed, as SIGHUP does; nil: no signals.
	Hangup <-chan os.Signal
	// Apply makes a file without faults the active version, unless its answer has Refused, or
	// Changed is false. An error with the code bad_request is a refusal, too. After any other
	// error the same file is applied again later.
	Apply func(context.Context, *control.File) (*schema.ConfigAnswer, error)
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// A reloader applies a broker's own hooks.yaml when it changes. A faulty or refused file changes
// nothing.
type reloader struct {
	opt     reloadOptions
	log     *slog.Logger
	metrics *reloadMetrics
	// seen is the last content of the file. retry fires if that content must be applied again.
	// Only run uses both.
	seen  fingerprint
	retry *time.Timer
}

// A fingerprint identifies the content of a file, or the error of reading it.
type fingerprint struct {
	sum [sha256.Size]byte
	err string
}

// newReloader notes the content of the file. Call it before the start of the broker reads the
// file, so that no change is missed.
func newReloader(opt reloadOptions) *reloader {
	r := &reloader{opt: opt, log: opt.Logger, metrics: newReloadMetrics(opt.Registerer), retry: time.NewTimer(0)}
	r.retry.Stop()
	if opt.Path != "" {
		_, r.seen, _ = r.read()
		r.log = r.log.With("file", opt.Path)
	}
	return r
}

// reloads returns the broker's reloader; nil: the file is read once.
func (b *Broker) reloads() *reloader {
	if b.opt.Reload == nil {
		return nil
	}
	return newReloader(reloadOptions{
		Path: b.opt.Config, Hangup: b.opt.Reload, Registerer: b.reg, Logger: b.log,
		Apply: func(ctx context.Context, f *control.File) (*schema.ConfigAnswer, error) {
			return b.agg.Apply(ctx, f)
		},
	})
}

// startReloads runs r until the broker stops.
func (b *Broker) startReloads(ctx context.Context, r *reloader) {
	if r == nil {
		return
	}
	b.inBackground(ctx, "reloads", r.run)
}

// run applies the file after each change, until ctx ends.
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
			r.check(ctx)
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

// check applies the file if its content has changed.
func (r *reloader) check(ctx context.Context) {
	if _, now, _ := r.read(); now != r.seen { // now contains the error
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

// reload applies the file.
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
	r.metrics.count(r.logResult(answer, err))
}

// file reads and checks the file.
func (r *reloader) file() (*control.File, error) {
	data, now, err := r.read()
	r.seen = now
	if err != nil {
		return nil, err
	}
	return toApply(r.opt.Path, data, "reloaded ")
}

// logResult logs the result of a reload and returns it as a label.
func (r *reloader) logResult(answer *schema.ConfigAnswer, err error) reloadResult {
	switch {
	case isLasting(err):
		r.log.Error("the configuration file was rejected; the active version stays", "error", err)
		return reloadRefused
	case err != nil:
		r.log.Error("the configuration file could not be applied; the broker tries again", "after", retryAfter, "error", err)
		r.retry.Reset(retryAfter)
		return reloadFailed
	case answer.Refused && mayPass(answer.Problems):
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

// mayPass reports whether no node named a handler that it cannot load. The problem is then that
// some nodes did not answer in time.
func mayPass(all []schema.Problem) bool {
	return !slices.ContainsFunc(all, func(p schema.Problem) bool { return p.Hook != "" })
}

// isLasting reports whether the same file would cause the same error again.
func isLasting(err error) bool {
	ce, ok := errors.AsType[*schema.ControlError](err)
	return ok && ce.Code == schema.CodeBadRequest
}

// inOneLine returns the faults of a file on one line, without lines of the file.
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

// joined joins sentences, at most maxLoggedFaults.
func joined(sentences []string) string {
	if more := len(sentences) - maxLoggedFaults; more > 0 {
		sentences = append(sentences[:maxLoggedFaults:maxLoggedFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(sentences, " | ")
}

// Package app runs hookworker as a function: it serves pools of a fabric until its context
// ends.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/internal/ops"
	"github.com/hookfabric/hookfabric/cmd/internal/pace"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
)

// options are the command's flags.
type options struct {
	nats, creds, name, hooks string
	http, httpClients        string
	pools                    []string
	concurrency              int
	tls                      certs.Files
}

// Main runs the worker's command line until it ends or ctx ends, and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var opt options
	c := &cobra.Command{
		Use:   "hookworker",
		Short: "Run the hooks of one or more worker pools",
		Long: "hookworker runs the hooks of one or more worker pools. It receives the configuration from the fabric.\n" +
			"It looks for a hook's program in --hooks, then in the folder that the configuration names, then in PATH.\n\n" +
			"Each flag has an environment variable: --hooks is HOOKFABRIC_HOOKS. A flag on the command line wins.",
		Example: "  hookworker --nats nats://127.0.0.1:4222 --hooks ./hooks\n" +
			"  hookworker --creds worker.creds --pool gpu --concurrency 8",
		Version: schema.Release, Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return run(c, &opt) },
	}
	f := c.Flags()
	f.StringVar(&opt.nats, "nats", nats.DefaultURL, "`URL` of the fabric's NATS server")
	f.StringVar(&opt.creds, "creds", "", "credentials `FILE` that 'broker creds add worker' wrote; default: none")
	program.TLSFlags(f, &opt.tls)
	program.HTTPAuthoritiesFlag(f, &opt.httpClients)
	f.StringSliceVar(&opt.pools, "pool", []string{schema.DefaultPool}, "`NAME` of a pool to serve; repeat the flag for several")
	f.StringVar(&opt.hooks, "hooks", "", "`DIR` with the hooks' programs and modules; default: the folder that the configuration names")
	f.IntVar(&opt.concurrency, "concurrency", 64, "number of batches that run at once, at least 1")
	f.StringVar(&opt.http, "http", "", "address `HOST:PORT` of /healthz, /readyz and /metrics, such as 127.0.0.1:9100; empty: no HTTP")
	f.StringVar(&opt.name, "name", "", "the worker's `ID`, unique in the fabric; default: a new id")
	return program.Run(ctx, c, args, stdin, program.Terminal(stdout), stderr)
}

// check rejects options with which no hook could run.
func (o *options) check() error {
	if o.concurrency < 1 {
		return program.UsageError("--concurrency is %d; it must be at least 1", o.concurrency)
	}
	if len(o.pools) == 0 {
		return program.UsageError("--pool is empty; write the pool to serve, such as %s", schema.DefaultPool)
	}
	for _, p := range o.pools {
		if !schema.IsPool(p) {
			return program.UsageError("--pool is %q, which is not a pool name; write 1 to 64 letters, digits, - and _", p)
		}
	}
	if o.hooks == "" {
		return nil
	}
	switch info, err := os.Stat(o.hooks); {
	case err != nil:
		return fmt.Errorf("reading the folder of --hooks: %w; name the folder with the hooks' programs", err)
	case !info.IsDir():
		return fmt.Errorf("--hooks is %s, which is not a folder; name the folder with the hooks' programs", o.hooks)
	}
	return nil
}

// crowd is the number of concurrent batches from which the worker uses all processors. It is low,
// because hooks may compute a lot.
const crowd = 2

func run(c *cobra.Command, opt *options) (err error) {
	log, err := program.Logger(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := opt.check(); err != nil {
		return err
	}
	var stack program.Stack
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 10*time.Second)
		defer cancel()
		err = errors.Join(err, stack.Stop(ctx))
	}()
	reg := ops.Registry()
	follows, leave := pace.Start(crowd)
	defer leave()
	w, err := newWorker(opt, follows, ops.Tracing("hookworker", reg, log, &stack), log)
	if err != nil {
		return err
	}
	connected := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "hookfabric", Name: "connected", Help: "1 while the process is connected to the bus, else 0.",
	})
	reg.MustRegister(w, connected)
	reg.MustRegister(ops.Credentials(func() (made, end time.Time, err error) { return bus.CredsTimes(opt.creds) })...)
	ctx, refuse := context.WithCancelCause(c.Context())
	defer refuse(nil)
	nc, err := bus.Connect(ctx, bus.Options{
		URL: opt.nats, Creds: opt.creds, TLS: opt.tls, Role: "worker", Name: workers.ConnectionPrefix + w.Name(), Logger: log, Plain: program.PlainNATS(),
		OnLeaving: w.Leave,
		OnDenied: func(err error) {
			if why := opt.notServing(err); why != nil {
				refuse(why)
			}
		},
		OnState: func(up bool) { connected.Set(map[bool]float64{true: 1}[up]) },
	})
	if err != nil {
		return err
	}
	connected.Set(1)
	stack.Push("connection", func(ctx context.Context) error { return bus.Drain(ctx, nc) })
	if opt.http != "" {
		url, err := ops.Serve(ops.Options{Addr: opt.http, TLS: opt.tls, ClientCA: opt.httpClients, Registry: reg, Ready: func() error { return ready(nc, w) }, Logger: log}, &stack)
		if err != nil {
			return err
		}
		log.Info("serving health checks and metrics", "url", url)
	}
	log.Info("serving", "worker", w.Name(), "pools", opt.pools, "bus", bus.RedactURL(opt.nats))
	err = workers.Run(ctx, nc, w)
	if c.Context().Err() == nil && context.Cause(ctx) != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// notServing returns an error if the credentials do not permit to serve the pools, because such a
// worker would never receive a batch; nil: the bus denied another operation, such as a reply to a
// forged address.
func (o *options) notServing(err error) error {
	if !strings.Contains(err.Error(), "Violation for Subscription to") {
		return nil
	}
	pools := strings.Join(o.pools, ",")
	return fmt.Errorf("the credentials in %s do not allow a worker to serve the pool %s: %w; create credentials with 'broker creds add worker NAME --pool %s', and name them with --creds",
		o.creds, pools, err, pools)
}

func newWorker(opt *options, follows *pace.Pace, tracer *trace.Tracer, log *slog.Logger) (*workers.Worker, error) {
	if opt.name == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making a worker id: %w", err)
		}
		opt.name = id.String()
	}
	w := workers.Options{
		Name: opt.name, Pools: opt.pools, Capacity: opt.concurrency,
		Runners: runners.New(log), Inline: runners.Inline(), Pace: follows, Tracer: tracer, Logger: log,
	}
	if opt.hooks != "" {
		w.Dirs = []string{opt.hooks}
	}
	return workers.New(w), nil
}

func ready(nc *nats.Conn, w *workers.Worker) error {
	switch {
	case !nc.IsConnected():
		return errors.New("not connected to the bus")
	case w.Version() == 0:
		return errors.New("no configuration is active; publish one with 'broker apply FILE'")
	}
	return nil
}

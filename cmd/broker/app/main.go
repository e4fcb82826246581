package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/fair"
	"github.com/hookfabric/hookfabric/cmd/broker/creds"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// stopTime is how long a stop may take: calls under way finish.
const stopTime = 45 * time.Second

// Main runs the broker's command line until it is done or ctx ends, and
// returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return program.Run(ctx, root(), args, stdin, stdout, stderr)
}

// DefaultData is where the embedded server keeps its data unless told otherwise.
func DefaultData() string {
	return filepath.Join(program.StateHome(), "broker")
}

func root() *cobra.Command {
	opt := &Options{}
	serve := func(c *cobra.Command, _ []string) error { return serve(c, opt) }
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Answer agents' hook events: the whole fabric in one process",
		Long: "broker answers agents' hook events. Alone it is the whole system on one machine: an embedded\n" +
			"NATS server with JetStream, an aggregator, and a worker for the pool \"default\".\n\n" +
			"Every flag has an environment variable: --ready-pools is HOOKFABRIC_READY_POOLS.",
		Args: program.NoArgs, RunE: serve,
	}
	sub := &cobra.Command{Use: "serve", Short: "The same, said explicitly", Args: program.NoArgs, RunE: serve}
	for _, c := range []*cobra.Command{cmd, sub} {
		serveFlags(c, opt)
	}
	cmd.AddCommand(sub, checkCommand(), applyCommand(), configCommand(), statusCommand(),
		injectCommand(), pendingCommand(), withdrawCommand(), answerCommand(), roundCommand(), freezeCommand(), thawCommand(), feedCommand(), creds.Command(DefaultData()), versionCommand())
	return cmd
}

func serveFlags(c *cobra.Command, opt *Options) {
	f := c.Flags()
	f.StringVar(&opt.Config, "config", "", "the hooks.yaml to publish, again when it changes and at SIGHUP; none: use what the fabric has")
	f.BoolVar(&opt.Replace, "replace", false, "publish --config although other brokers use another configuration")
	f.StringVar(&opt.Data, "data", DefaultData(), "directory of the embedded server")
	f.StringVar(&opt.Listen, "listen", "127.0.0.1:4222", "address of the embedded server")
	f.StringVar(&opt.HTTP, "http", "127.0.0.1:8480", "address of /healthz, /readyz and /metrics; empty for none")
	f.StringVar(&opt.NATS, "nats", "", "use this NATS deployment instead of the embedded server")
	f.StringVar(&opt.Creds, "creds", "", "credentials file for --nats, or for --leaf-remotes")
	f.StringVar(&opt.TLS.Cert, "tls-cert", "", "PEM file of the certificate to show: to those who connect, at --http where other machines can reach it, and to --nats")
	f.StringVar(&opt.TLS.Key, "tls-key", "", "PEM file of its key")
	f.StringVar(&opt.TLS.CA, "tls-ca", "", "PEM file of authorities: who connects must show a certificate of one of them; with --nats, the servers that are trusted")
	program.HTTPAuthoritiesFlag(f, &opt.HTTPClients)
	clusterFlags(f, &opt.Cluster, &opt.Leaf)
	f.IntVar(&opt.Replicas, "replicas", 0, "on how many servers everything is kept: 1, 3 or 5; more are made at once, fewer never; 0: 3 in a cluster of 3 brokers or more, else 1, also with --nats")
	f.StringVar(&opt.Tenant, "tenant", "", "serve this tenant of those that 'broker creds' made (default: the one called default)")
	f.BoolVar(&opt.NoWorker, "no-worker", false, "leave the pool \"default\" to hookworkers")
	program.DurationVar(f, &opt.Sync, "sync", 0, "how often the embedded server syncs to disk; 0: at every write")
	perAgentFlags(f, &opt.PerAgent)
	opt.Record.flags(c)
	f.StringSliceVar(&opt.ReadyPools, "ready-pools", nil, "pools that must have a worker before /readyz says ready")
}

// usualAgentCalls is how many calls one agent may have under way: far more than one
// that works as it should, and an eighth of what a broker has under way.
const usualAgentCalls = 1024

// perAgentFlags are those that bound what one agent takes. There is no usual rate: an
// event over it is not judged, and how many are too many only those can say who know
// their agents.
func perAgentFlags(f *pflag.FlagSet, l *fair.Limits) {
	f.Float64Var(&l.Rate, "agent-rate", 0, "how many events a second this broker judges for one agent; what is over that is refused if a hook would have judged it; 0: any number")
	f.IntVar(&l.Burst, "agent-burst", 0, "how many may come at once before --agent-rate counts; 0: what comes in two seconds, at least 20")
	f.IntVar(&l.Calls, "agent-calls", usualAgentCalls, "how many calls of one agent this broker has under way; what is over that is refused if a hook would have judged it; 0: any number")
}

func serve(c *cobra.Command, opt *Options) error {
	log, err := program.Logger(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if opt.NATS != "" && c.Flags().Changed("listen") {
		log.Warn("--listen is not used: it is for the embedded server, and --nats or HOOKFABRIC_NATS names another one", "nats", bus.RedactURL(opt.NATS))
	}
	if opt.Replicas < 0 || opt.Replicas > 5 || opt.Replicas > 1 && opt.Replicas%2 == 0 {
		return program.UsageError("--replicas is %d; write 1, 3 or 5", opt.Replicas)
	}
	if err := opt.PerAgent.Check(); err != nil {
		return program.UsageError("%v", err)
	}
	opt.Logger = log
	reload, stop := hangups()
	defer stop()
	opt.Reload = reload
	b, err := New(c.Context(), *opt)
	if err != nil {
		return err
	}
	banner(c.OutOrStdout(), b)
	<-c.Context().Done()
	log.Info("stopping: finishing the calls under way; a second signal ends at once")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), stopTime)
	defer cancel()
	return b.Close(ctx)
}

// banner says where the broker listens and what to try next, as commands that
// work when pasted.
func banner(w io.Writer, b *Broker) {
	st := b.Status()
	fmt.Fprintf(w, "hookfabric broker %s is ready\n", schema.Release)
	fmt.Fprintf(w, "  bus     %s\n", b.URL())
	if b.HTTPURL != "" {
		fmt.Fprintf(w, "  http    %s  (/healthz /readyz /metrics)\n", b.HTTPURL)
	}
	if b.server != nil {
		fmt.Fprintf(w, "  data    %s\n", b.opt.Data)
	}
	fmt.Fprintf(w, "  hooks   %d (configuration version %d)\n", st.Hooks, st.ConfigVersion)
	flag := ""
	if b.URL() != "nats://127.0.0.1:4222" {
		flag = " --nats " + b.URL()
	}
	fmt.Fprintf(w, "\nTry next, in another terminal:\n")
	if b.server != nil && b.realm() != "" {
		fmt.Fprintf(w, "  # Everybody has to say who they are here. Make credentials, and name them in HOOKFABRIC_CREDS:\n"+
			"  #   %s creds add agent demo --data %s\n  #   %s creds add operator NAME --data %s\n", sibling("broker"), b.opt.Data, sibling("broker"), b.opt.Data)
	}
	if b.server != nil && b.opt.TLS.Shows() {
		fmt.Fprintf(w, "  # Name the authority of %s in HOOKFABRIC_TLS_CA, unless this machine trusts it already.\n", b.opt.TLS.Cert)
	}
	fmt.Fprintf(w, "  echo '{\"hook_type\":\"PreToolUse\",\"agent_id\":\"demo\",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"ls\"}}' | %s hook --runtime generic%s\n",
		sibling("agentshim"), flag)
	fmt.Fprintf(w, "  %s status%s\n", sibling("broker"), flag)
	if b.HTTPURL != "" {
		fmt.Fprintf(w, "  curl -s %s/metrics | grep hookfabric_requests_total\n", b.HTTPURL)
	}
}

// sibling is how to call another command of the fabric from a shell: the
// program beside this one, or from the source tree if that is where this runs.
func sibling(name string) string {
	self, err := os.Executable()
	// What `go run` runs lies in a folder of the build's, which is no place to name.
	if err == nil && !strings.Contains(self, "go-build") {
		path := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return "go run ./cmd/" + name
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "hookfabric broker "+schema.Release)
			return err
		},
	}
}

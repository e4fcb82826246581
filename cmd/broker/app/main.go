package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/cmd/broker/creds"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// stopTime bounds a stop, during which calls in progress finish.
const stopTime = 45 * time.Second

// Main runs the broker's command line until it ends or ctx ends, and
// returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return program.Run(ctx, root(), args, stdin, program.Terminal(stdout), stderr)
}

// DefaultData is the default directory of the embedded server.
func DefaultData() string {
	return filepath.Join(program.StateHome(), "broker")
}

func root() *cobra.Command {
	opt := &Options{}
	serve := func(c *cobra.Command, _ []string) error { return serve(c, opt) }
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Answer agents' hook events: the whole fabric in one process",
		Long: "broker answers the hook events of AI agents. Without flags it is the whole fabric on one machine: an embedded\n" +
			"NATS server with JetStream, an aggregator, and a worker for the pool \"default\". It listens on loopback only.\n\n" +
			"Each flag has an environment variable: --ready-pools is HOOKFABRIC_READY_POOLS. A flag wins over its variable.\n" +
			"Durations are written as 90s, 12h or 7d, sizes as 512MiB or 1GiB.",
		Example: "  broker --config hooks.yaml\n" +
			"  broker --nats nats://nats.example:4222 --creds broker.creds --no-worker",
		Args: program.NoArgs, RunE: serve,
	}
	sub := &cobra.Command{
		Use: "serve", Short: "Answer hook events, as broker does without a command",
		Long:    "serve does what broker does without a command, and takes the same flags.",
		Example: "  broker serve --config hooks.yaml", Args: program.NoArgs, RunE: serve,
	}
	for _, c := range []*cobra.Command{cmd, sub} {
		addSections(c, serveSections(opt))
	}
	showSections(cmd)
	cmd.AddCommand(sub, checkCommand(), testCommand(), applyCommand(), configCommand(), hooksCommand(), statusCommand(),
		injectCommand(), pendingCommand(), withdrawCommand(), answerCommand(), roundCommand(), modeCommand(), checkpointCommand(), freezeCommand(), thawCommand(), feedCommand(), creds.Command(DefaultData()), versionCommand())
	return cmd
}

// serveSections returns the flags of `broker` and `broker serve`.
func serveSections(opt *Options) []section {
	return []section{
		{"Server", func(f *pflag.FlagSet) { serverFlags(f, opt) }},
		{"Cluster", func(f *pflag.FlagSet) { clusterFlags(f, &opt.Cluster, &opt.Leaf, &opt.Replicas) }},
		{"Security", func(f *pflag.FlagSet) { securityFlags(f, opt) }},
		{"Record of verdicts", opt.Record.flags},
		{"Limits for one agent", func(f *pflag.FlagSet) { limitFlags(f, opt) }},
	}
}

// serverFlags adds the flags of the embedded server, HTTP and the worker.
func serverFlags(f *pflag.FlagSet, opt *Options) {
	f.StringVar(&opt.Config, "config", "", "publish this hooks.yaml at the start, after each change of the file, and at SIGHUP (default: use the configuration that the fabric has)")
	f.BoolVar(&opt.Replace, "replace", false, "publish --config even if running brokers use another configuration (default: refuse to start)")
	f.StringVar(&opt.Data, "data", DefaultData(), "data directory of the embedded NATS server")
	f.StringVar(&opt.Listen, "listen", "127.0.0.1:4222", "address of the embedded NATS server; beyond loopback it needs credentials and TLS")
	f.StringVar(&opt.HTTP, "http", "127.0.0.1:8480", "address of /healthz, /readyz and /metrics; empty disables HTTP; beyond loopback it needs TLS")
	f.StringVar(&opt.NATS, "nats", "", "use the NATS deployment at this URL instead of the embedded server")
	f.BoolVar(&opt.NoWorker, "no-worker", false, "run no worker for the pool \"default\"; hookworkers serve it")
	f.StringSliceVar(&opt.ReadyPools, "ready-pools", nil, "/readyz reports ready only when each of these pools has a worker")
	program.DurationVar(f, &opt.Sync, "sync", 0, "sync the embedded server's files to disk at this interval; 0 syncs at every write, a longer interval can lose accepted messages in a power failure")
}

// securityFlags adds the flags of credentials and certificates.
func securityFlags(f *pflag.FlagSet, opt *Options) {
	f.StringVar(&opt.Creds, "creds", "", "credentials file that the broker uses with --nats or --leaf-remotes")
	f.StringVar(&opt.Tenant, "tenant", "", "serve this tenant, which 'broker creds tenant add' made (default: the tenant \"default\")")
	f.StringVar(&opt.TLS.Cert, "tls-cert", "", "PEM file of the broker's certificate: for NATS clients, for HTTP clients on non-loopback addresses, and for the servers of --nats")
	f.StringVar(&opt.TLS.Key, "tls-key", "", "PEM file of the private key of --tls-cert")
	f.StringVar(&opt.TLS.CA, "tls-ca", "", "PEM file of CA certificates that verify NATS clients, which then need a certificate; with --nats, they verify the servers instead")
	program.HTTPAuthoritiesFlag(f, &opt.HTTPClients)
}

// usualAgentCalls is the default of --agent-calls: far more than a working agent has in progress,
// and an eighth of the broker's own limit.
const usualAgentCalls = 1024

// usualAgentRequests is the default of --agent-requests: far more than a working agent makes.
const usualAgentRequests = 200

// usualAgentMessages is the default of --agent-messages: a hundred times what a working agent
// sends, and a few percent of what a client can send.
const usualAgentMessages = 20_000

// limitFlags adds the limits for one agent. --agent-rate has no default, because calls above it are
// refused, and only operators know how many events their agents send.
func limitFlags(f *pflag.FlagSet, opt *Options) {
	l, a, u := &opt.PerAgent, &opt.Allowances, ratelimit.Usual()
	f.Float64Var(&l.Rate, "agent-rate", 0, "events per second that this broker judges for one agent; above it, the broker refuses calls that a hook would have judged; 0: no limit")
	f.IntVar(&l.Burst, "agent-burst", 0, "events at once before --agent-rate applies; 0: the events of 2 seconds, at least 20")
	f.IntVar(&l.Calls, "agent-calls", usualAgentCalls, "calls of one agent under way at this broker; above it, the broker refuses calls that a hook would have judged; 0: no limit")
	f.Float64Var(&l.Requests, "agent-requests", usualAgentRequests, "control requests per second that this broker serves for one agent, ten times as many at once; above it, the broker refuses them; 0: ten times --agent-rate")
	f.IntVar(&opt.Messages, "agent-messages", usualAgentMessages, "NATS messages per second for one agent's credentials, with at most 64MiB per second; a host's credentials have twice these limits; above them, the embedded server refuses the credentials for 10s; 0: no limit")
	f.IntVar(&a.Answers, "agent-answers", u.Answers, "answers of one agent that wait for other agents, at all brokers together; the broker refuses more")
	program.BytesVar(f, &a.AnswerBytes, "agent-answer-bytes", u.AnswerBytes, "size of these answers together; the broker refuses more")
	program.BytesVar(f, &a.HistoryBytes, "agent-history-bytes", u.HistoryBytes, "conversation data per hour that this broker stores for one agent; it refuses more")
	program.BytesVar(f, &a.UnjudgedBytes, "agent-unjudged-bytes", u.UnjudgedBytes, "bytes per day of one agent's reports about calls that no broker judged; this broker refuses more")
	f.IntVar(&a.Reserve, "reserve", u.Reserve, "percent of the queue, the object store and the session names that only operators, orchestrators and rounds may use, 1 to 90")
}

func serve(c *cobra.Command, opt *Options) error {
	log, err := program.Logger(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if opt.NATS != "" && c.Flags().Changed("listen") {
		log.Warn("--listen is ignored: it configures the embedded server, and --nats or HOOKFABRIC_NATS names a deployment to use instead", "nats", bus.RedactURL(opt.NATS))
	}
	if opt.Replicas < 0 || opt.Replicas > 5 || opt.Replicas > 1 && opt.Replicas%2 == 0 {
		return program.UsageError("--replicas is %d; use 1, 3 or 5", opt.Replicas)
	}
	if opt.Messages < 0 {
		return program.UsageError("--agent-messages is %d; use a number of messages per second, or 0 for no limit", opt.Messages)
	}
	if err := errors.Join(opt.PerAgent.Check(), opt.Allowances.Check()); err != nil {
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
	log.Info("stopping: the broker finishes the calls under way; a second signal ends it at once")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), stopTime)
	defer cancel()
	return b.Close(ctx)
}

// banner prints the addresses of the broker and commands to try next.
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
		fmt.Fprintf(w, "  # This broker needs credentials from its clients. Make them, and name the file in HOOKFABRIC_CREDS:\n"+
			"  #   %s creds add agent demo --data %s\n  #   %s creds add operator NAME --data %s\n", sibling("broker"), b.opt.Data, sibling("broker"), b.opt.Data)
	}
	if b.server != nil && b.opt.TLS.Shows() {
		fmt.Fprintf(w, "  # Name the authority that signed %s in HOOKFABRIC_TLS_CA, unless this machine already trusts it.\n", b.opt.TLS.Cert)
	}
	fmt.Fprintf(w, "  echo '{\"hook_type\":\"PreToolUse\",\"agent_id\":\"demo\",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"ls\"}}' | %s hook --runtime generic%s\n",
		sibling("agentshim"), flag)
	fmt.Fprintf(w, "  %s status%s\n", sibling("broker"), flag)
	if b.HTTPURL != "" {
		fmt.Fprintf(w, "  curl -s %s/metrics | grep hookfabric_requests_total\n", b.HTTPURL)
	}
}

// sibling returns the command that starts another program of the fabric: the file beside this
// program, or `go run` in the source tree.
func sibling(name string) string {
	self, err := os.Executable()
	// `go run` starts programs from a temporary folder.
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

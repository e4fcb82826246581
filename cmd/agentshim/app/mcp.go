package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus/otlp"
	"github.com/hookfabric/hookfabric/cmd/agentshim/channel"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/judge"
	"github.com/hookfabric/hookfabric/cmd/agentshim/mcp"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// proxy is one call of `agentshim mcp`.
type proxy struct {
	link
	agent, server, unreachable, channel, socket string
	url, listen, headers                        string
	timeout, askTimeout                         time.Duration
	// managed: it was installed for all agents of the machine.
	managed bool
	// direct: somebody named the bus, so that no daemon is asked.
	direct bool
}

func mcpCommand(code *int) *cobra.Command {
	var p proxy
	c := &cobra.Command{
		Use:   "mcp [flags] (-- PROGRAM [ARG]... | --url URL [--listen HOST:PORT])",
		Short: "Stand between an MCP client and an MCP server, and have its tool calls judged",
		Long: "mcp starts an MCP server that speaks over stdin and stdout, and stands in its place. Every tools/call is\n" +
			"asked about before the server sees it, and its result reported before the client does: a call that is\n" +
			"denied is answered with the reason, hooks may change arguments and results, and what waits for the agent\n" +
			"stands at the end of a result. All else passes as it is.\n\n" +
			"A call that a person must approve is put to the client's user if the client can ask (elicitation),\n" +
			"and denied if it can not. The server has the proxy's environment and folder; the fabric hears nothing of\n" +
			"either but the folder's name.",
		Example: "  agentshim mcp --server files -- npx -y @modelcontextprotocol/server-filesystem /home/dev/project",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.check(args); err != nil {
				return err
			}
			p.direct = program.Explicit(c.Flags(), "nats") || program.Explicit(c.Flags(), "creds") || program.ExplicitTLS(c.Flags())
			ended, err := p.run(c.Context(), c, args)
			*code = ended
			return err
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&p.agent, "agent", "", "the agent's id; default: <runtime>-<session>, as the client says")
	f.StringVar(&p.server, "server", "", "the server's name in the client's configuration, of which hooks know its tools as mcp__NAME__TOOL; default: what the server calls itself")
	p.flags(f, "none")
	f.StringVar(&p.channel, "channel", "", "a folder in which 'agentshim drain --channel' puts texts for the agent: each is told after a call of a tool that it is for")
	f.StringVar(&p.url, "url", "", "the URL of a server that speaks over HTTP (streamable), in the place of a program")
	f.StringVar(&p.listen, "listen", "", "with --url: HOST:PORT on loopback at which clients find the server, at the same path; all processes of this machine can be one, and share --headers; default: stdin and stdout")
	f.StringVar(&p.headers, "headers", "", "with --url: a file of lines NAME: VALUE, which go with each request to the server, such as its Authorization")
	f.StringVar(&p.socket, "socket", "", "where the local daemon listens, if there is one; default: "+
		"hookfabric/agentshim.sock in $XDG_RUNTIME_DIR, else agentshim.sock in --state. With --nats no daemon is asked")
	program.DurationVar(f, &p.timeout, "timeout", mcp.DefaultTimeout, "how long one question to the fabric may take")
	program.DurationVar(f, &p.askTimeout, "ask-timeout", mcp.DefaultAskTimeout, "how long the client's user may take to approve a call")
	f.BoolVar(&p.managed, "managed", false, "it was installed for all agents of the machine: calls that nobody judged are denied if no policy is known")
	f.StringVar(&p.unreachable, "unreachable", "", "what to do with tool calls that nobody judged while no policy is known: deny or allow; default: allow, or deny with --managed")
	return c
}

func (p *proxy) check(args []string) error {
	if p.unreachable == "" {
		if p.unreachable = judge.UnreachableAllow; p.managed {
			p.unreachable = judge.UnreachableDeny
		}
	}
	switch {
	case p.url != "" && len(args) > 0:
		return program.UsageError("--url and a program contradict each other; write one of them")
	case p.url == "" && (p.listen != "" || p.headers != ""):
		return program.UsageError("--listen and --headers are for a server with a --url")
	case p.url == "" && len(args) == 0:
		return program.UsageError("the MCP server is missing; write its command line after --, as in agentshim mcp -- PROGRAM ARG, or its address with --url")
	case p.unreachable != judge.UnreachableDeny && p.unreachable != judge.UnreachableAllow:
		return program.UsageError("--unreachable is %q; write deny or allow", p.unreachable)
	case p.timeout <= 0:
		return program.UsageError("--timeout is %s; it must be longer than nothing", p.timeout)
	case p.askTimeout <= 0:
		return program.UsageError("--ask-timeout is %s; it must be longer than nothing", p.askTimeout)
	}
	return nil
}

func (p *proxy) run(ctx context.Context, c *cobra.Command, args []string) (code int, err error) {
	// A client that does not read any more is an error of the write: the server is
	// still to be ended in good order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stderr := c.ErrOrStderr()
	judge.MakeWorkspaces(p.workspaces)
	l := p.judgeLink("agentshim-mcp", stderr)
	l.Unnamed = !p.direct
	spans := otlp.FromEnvironment(service, slog.New(slog.NewTextHandler(stderr, nil)))
	l.Tracer = spans.Tracer()
	defer spans.CloseIn(finishTime)
	j := judge.NewResident(l)
	defer j.Close()
	guard := p.guard(p.asker(j), stderr)
	if p.url != "" {
		return 0, p.http(ctx, guard, c)
	}
	guard.Fallback = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
	server := mcp.Process{Args: args, Stderr: stderr}
	return server.Run(ctx, mcp.Pipe{Guard: guard, AskTimeout: p.askTimeout, FromClient: c.InOrStdin(), ToClient: c.OutOrStdout()})
}

// http stands before a server that speaks over HTTP.
func (p *proxy) http(ctx context.Context, guard *mcp.Guard, c *cobra.Command) error {
	target, err := url.Parse(p.url)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return program.UsageError("--url is %q; write a URL such as https://mcp.example.com/mcp", p.url)
	}
	headers, err := mcp.ReadHeaders(p.headers)
	if err != nil {
		return err
	}
	guard.Fallback = target.Hostname()
	if p.listen == "" {
		face := mcp.Face{Target: target, Headers: headers, Stderr: guard.Stderr}
		return face.Run(ctx, mcp.Pipe{Guard: guard, AskTimeout: p.askTimeout, FromClient: c.InOrStdin(), ToClient: c.OutOrStdout()})
	}
	if err := program.Loopback(p.listen); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", p.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(guard.Stderr, "agentshim: the server is at http://%s%s\n", l.Addr(), target.EscapedPath())
	return (&mcp.Relay{Guard: guard, Target: target, AskTimeout: p.askTimeout, Headers: headers}).Serve(ctx, l)
}

// asker is the local daemon, and where there is none the fabric itself.
func (p *proxy) asker(j *judge.Judge) mcp.Asker {
	if p.direct {
		return j
	}
	// Without --agent the agent's id is a guess: the client's own hooks know better.
	return &daemon.Client{
		Socket: daemon.Place{State: p.state, At: p.socket}.Socket(), Creds: absolute(p.creds), Else: j, Borrow: p.agent == "",
	}
}

func (p *proxy) guard(asker mcp.Asker, stderr io.Writer) *mcp.Guard {
	g := &mcp.Guard{
		Asker: asker, Agent: p.agent, Server: p.server, Workspaces: p.workspaces, Unreachable: p.unreachable, Timeout: p.timeout, Stderr: stderr,
	}
	if cwd, err := os.Getwd(); err == nil {
		g.Cwd = cwd
	}
	if p.channel != "" {
		g.Channel = channel.NewReader(p.channel, stderr)
	}
	return g
}

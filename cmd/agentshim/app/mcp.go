package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/channel"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/cmd/internal/otlp"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

type proxy struct {
	link
	agent, server, unreachable, channel, socket string
	url, listen, headers                        string
	timeout, askTimeout                         time.Duration
	managed                                     bool // the proxy is installed for all agents of the machine
	direct                                      bool // a flag names the bus, so the proxy does not use the daemon
}

func mcpCommand(code *int) *cobra.Command {
	var p proxy
	c := &cobra.Command{
		Use:   "mcp [flags] (-- PROGRAM [ARG]... | --url URL [--listen HOST:PORT])",
		Short: "Run as a proxy between an MCP client and an MCP server, and ask the fabric about each tool call",
		Long: "mcp is a proxy for one MCP server. Put it before the server's own command line in the client's configuration.\n" +
			"It starts PROGRAM and talks to it over stdin and stdout, or connects to --url.\n\n" +
			"It asks the fabric before the server sees a tools/call, and again before the client sees the result. A denied\n" +
			"call gets a result with the reason. Hooks can change arguments and results. mcp appends items that wait for\n" +
			"the agent to a result. All other messages pass unchanged.\n\n" +
			"If a person must approve a call, mcp asks the client's user (elicitation). If the client cannot ask, mcp denies\n" +
			"the call. PROGRAM gets the environment and the working folder of mcp; the fabric gets only the folder's name.",
		Example: "  agentshim mcp --server files -- npx -y @modelcontextprotocol/server-filesystem /home/dev/project\n" +
			"  agentshim mcp --server issues --url https://mcp.example.com/mcp --headers headers.txt",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.check(args); err != nil {
				return err
			}
			p.resolve(c.Flags())
			p.direct = program.Explicit(c.Flags(), "nats") || program.Explicit(c.Flags(), "creds") || program.ExplicitTLS(c.Flags())
			ended, err := p.run(c.Context(), c, args)
			*code = ended
			return err
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&p.agent, "agent", "", "the agent's `ID`; use the ID of the runtime's own hooks; default: <runtime>-<session>, as the client reports them")
	f.StringVar(&p.server, "server", "", "`NAME` of the server in the client's configuration; hooks see its tools as mcp__NAME__TOOL, or under the name that the client's own hooks use; default: the server's own name")
	p.flags(f, "none")
	f.StringVar(&p.channel, "channel", "", "append the texts that 'agentshim drain --channel' puts into `DIR` to results of tools; default: none")
	f.StringVar(&p.url, "url", "", "`URL` of an MCP server that uses streamable HTTP, instead of PROGRAM")
	f.StringVar(&p.listen, "listen", "", "with --url: serve clients over HTTP at this loopback address `HOST:PORT` instead of stdin and stdout; clients use http://HOST:PORT/TOKEN and the server's path, or send the token in the header "+mcp.TokenHeader+"; agentshim keeps the token in mcp.token in --state")
	f.StringVar(&p.headers, "headers", "", "with --url: `FILE` with lines NAME: VALUE, such as Authorization: Bearer TOKEN; agentshim adds them to each request to the server; default: none")
	socketFlag(f, &p.socket, byItself)
	program.DurationVar(f, &p.timeout, "timeout", mcp.DefaultTimeout, "limit for one question to the fabric, such as 30s")
	program.DurationVar(f, &p.askTimeout, "ask-timeout", mcp.DefaultAskTimeout, "limit for the client's user to approve a call, such as 10m")
	f.BoolVar(&p.managed, "managed", false, "for installations that users cannot change: deny calls when the fabric does not answer and no policy is known; default: off")
	unreachableFlag(c, &p.unreachable, "deny or allow tool calls when the fabric does not answer and no policy is known; default: allow, or deny with --managed")
	return c
}

func (p *proxy) check(args []string) error {
	if err := checkUnreachable(&p.unreachable, p.managed); err != nil {
		return err
	}
	switch {
	case p.url != "" && len(args) > 0:
		return program.UsageError("the command line has both --url and PROGRAM; write one of them")
	case p.url == "" && (p.listen != "" || p.headers != ""):
		return program.UsageError("--listen and --headers need --url; add --url URL, or leave them out")
	case p.url == "" && len(args) == 0:
		return program.UsageError("the MCP server is missing; write its command line after --, as in 'agentshim mcp -- PROGRAM ARG', or its address with --url")
	case p.timeout <= 0:
		return program.UsageError("--timeout is %s; write a positive duration such as 30s", p.timeout)
	case p.askTimeout <= 0:
		return program.UsageError("--ask-timeout is %s; write a positive duration such as 30s", p.askTimeout)
	}
	return nil
}

func (p *proxy) run(ctx context.Context, c *cobra.Command, args []string) (code int, err error) {
	// Ignore SIGPIPE: if the client no longer reads, the proxy still ends the server in order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stderr := c.ErrOrStderr()
	log, err := program.Logger(program.Messages(stderr))
	if err != nil {
		return 0, err
	}
	if err := p.link.check(); err != nil {
		return 0, err
	}
	local := p.daemon()
	if !p.direct && !p.managed && listens(local.Socket) {
		p.follow(local.Socket)
	}
	l := p.judgeLink("agentshim-mcp", stderr, log)
	spans := otlp.FromEnvironment(service, log)
	l.Tracer = spans.Tracer()
	defer spans.CloseIn(finishTime)
	j := decide.NewResident(l)
	defer j.Close()
	guard := p.guard(j, program.Messages(stderr))
	if !p.direct {
		local.Else, guard.Asker = j, local
	}
	if p.url != "" {
		return 0, p.http(ctx, guard, c)
	}
	guard.Fallback = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0]))
	server := mcp.Process{Args: args, Stderr: program.Raw(stderr)} // the server's text is passed on unchanged
	return server.Run(ctx, mcp.Pipe{Guard: guard, AskTimeout: p.askTimeout, FromClient: c.InOrStdin(), ToClient: c.OutOrStdout()})
}

// http runs the proxy in front of a server that speaks HTTP.
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
		client := mcp.HTTPClient{Target: target, Headers: headers, Stderr: guard.Stderr}
		return client.Run(ctx, mcp.Pipe{Guard: guard, AskTimeout: p.askTimeout, FromClient: c.InOrStdin(), ToClient: c.OutOrStdout()})
	}
	if err := program.Loopback(p.listen); err != nil {
		return err
	}
	token, err := daemon.Place{State: absolute(p.state)}.MakeRelayToken()
	if err != nil {
		return fmt.Errorf("the token of --listen: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", p.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(guard.Stderr, "agentshim: clients reach the server at http://%s/%s%s\n", l.Addr(), token, target.EscapedPath())
	return (&mcp.Relay{Guard: guard, Target: target, Token: token, AskTimeout: p.askTimeout, Headers: headers}).Serve(ctx, l)
}

// daemon returns a client of the local daemon. Without --agent, the agent's id is a guess.
func (p *proxy) daemon() *daemon.Client {
	c := &daemon.Client{Socket: daemon.Place{State: p.state, At: p.socket}.Socket(), Creds: absolute(p.creds), Borrow: p.agent == ""}
	if !p.unnamed {
		c.NATS = p.nats
	}
	return c
}

func (p *proxy) guard(asker decide.Asker, stderr io.Writer) *mcp.Guard {
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

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/doctor"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// answerTime is how long install waits for a broker to answer.
const answerTime = time.Second

const thisDaemon = "daemon"

type installing struct {
	install.Request
	user, project, managed bool
	dryRun, trust          bool
	version                string
	found                  install.Hook // has the flags of the hooks, with those that only the environment sets

	stdout, stderr io.Writer
}

func installCommand() *cobra.Command {
	var in installing
	c := &cobra.Command{
		Use:   "install RUNTIME",
		Short: "Connect an agent runtime to the fabric",
		Long: "install adds agentshim to the configuration of an agent runtime.\n" +
			"RUNTIME is one of " + strings.Join(install.Names(), ", ") + ".\n\n" +
			"Other entries of the configuration stay as they are. install keeps a copy of the old file beside the new one.\n" +
			"A second installation changes nothing. install writes only flags of the command line into the configuration;\n" +
			"it ignores HOOKFABRIC_ variables.",
		Example:   "  agentshim install claude --project\n  agentshim install codex --trust --agent scout",
		ValidArgs: install.Names(),
		Args:      in.runtime,
		RunE:      func(c *cobra.Command, _ []string) error { return in.run(c, in.Install) },
	}
	in.flags(c)
	f, h := c.Flags(), &in.Hook
	f.StringVar(&h.Shim, "shim", "", "`PATH` of agentshim that the runtime starts; its name must begin with agentshim; default: this program")
	f.StringVar(&h.Agent, "agent", "", "the agent's `ID`; default: the id in each event, else <runtime>-<session id>")
	f.StringVar(&h.NATS, "nats", "", "`URL` of the fabric's NATS server; with it, the hooks connect themselves and do not use the daemon; default: the daemon's fabric")
	f.StringVar(&h.Creds, "creds", "", "credentials `FILE` that 'broker creds add' wrote; default: none")
	program.TLSFlags(f, &h.TLS)
	f.StringVar(&h.State, "state", "", "state folder `DIR` of the hooks; default: as for 'agentshim hook'")
	f.DurationVar(&h.Timeout, "timeout", schema.RuntimeTimeout, "how long the runtime waits for an answer, 2s to 1h; agentshim answers earlier, and a hook in hooks.yaml can use four fifths of it")
	unreachableFlag(c, &h.Unreachable, "deny or allow tool calls and prompts when the fabric does not answer and no policy is known; default: allow, or deny with --managed")
	f.StringVar(&h.URL, "http", "", "have the runtime send its events to the daemon at this `URL` instead of starting agentshim; only for Claude Code "+install.Blocking().String()+" or later; without a value: the daemon of this machine")
	f.Lookup("http").NoOptDefVal = thisDaemon
	f.BoolVar(&h.Approve, "auto-approve", false, "ask the fabric before the runtime asks its user for approval; default: off")
	f.BoolVar(&h.Models, "models", false, "also ask the fabric at calls of the model, if the runtime has hooks for them; default: off")
	f.BoolVar(&in.trust, "trust", false, "make Codex trust the hooks; Codex skips hooks that it does not trust; default: off")
	f.StringVar(&in.version, "runtime-version", "", "`VERSION` of the runtime, such as 2.1.295; default: the output of the runtime's --version")
	return c
}

func uninstallCommand() *cobra.Command {
	var in installing
	c := &cobra.Command{
		Use:   "uninstall RUNTIME",
		Short: "Remove agentshim from the configuration of a runtime",
		Long: "uninstall removes the hooks of agentshim from the configuration of an agent runtime, and nothing else.\n" +
			"If nothing else changed since the installation, the file is again byte for byte as it was before.",
		Example:   "  agentshim uninstall claude --project",
		ValidArgs: install.Names(),
		Args:      in.runtime,
		RunE: func(c *cobra.Command, _ []string) error {
			return in.run(c, func(ctx context.Context) (install.Plan, error) {
				in.forget(ctx)
				return in.Uninstall(ctx)
			})
		},
	}
	in.flags(c)
	return c
}

func (in *installing) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&in.user, "user", false, "for all agents of this user (default)")
	f.BoolVar(&in.project, "project", false, "for agents that work in the current folder")
	f.BoolVar(&in.managed, "managed", false, "for all agents of this machine, in files that users cannot change; needs root")
	program.Apart(c, "user", "project", "managed")
	f.BoolVar(&in.dryRun, "dry-run", false, "print the changes as a diff, and change nothing")
	f.StringVar(&in.Machine.Root, "root", "", "write all configuration files below `DIR`, to prepare an image; default: /")
}

func (in *installing) runtime(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return program.UsageError("write 'agentshim %s RUNTIME' with one of %s", c.Name(), strings.Join(install.Names(), ", "))
	}
	in.Runtime = args[0]
	return nil
}

// run makes the plan, and carries it out or shows it.
func (in *installing) run(c *cobra.Command, plan func(context.Context) (install.Plan, error)) error {
	in.stdout, in.stderr, in.found = program.Terminal(c.OutOrStdout()), c.ErrOrStderr(), in.Hook
	if err := in.prepare(c); err != nil {
		return err
	}
	p, err := plan(c.Context())
	if err != nil {
		return err
	}
	if in.dryRun {
		diff := p.Diff()
		if !p.Changed() {
			diff = "there is nothing to change\n"
		}
		_, err := io.WriteString(in.stdout, diff)
		return err
	}
	said, err := p.Apply(time.Now())
	for _, s := range said {
		fmt.Fprintln(in.stdout, s)
	}
	if len(p.Changes) == 0 {
		in.sayUnchanged()
	}
	if err != nil {
		return err
	}
	if c.Name() == "install" {
		in.sayFabric(c.Context())
	}
	if in.trust {
		return in.trustCodex(c.Context(), true)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(in.stdout, n)
	}
	return nil
}

// sayFabric says which fabric the installed hooks will ask, and whether a broker answers there.
func (in *installing) sayFabric(ctx context.Context) {
	if in.Machine.Root != "" || in.Hook.URL != "" {
		return
	}
	h := in.found
	if in.managed {
		h = in.Hook
	}
	l := link{nats: cmp.Or(h.NATS, bus.DefaultURL), creds: h.Creds, tls: h.TLS, state: cmp.Or(h.State, program.OwnState()), unnamed: h.NATS == ""}
	l.follow(daemon.Place{State: l.state}.Socket())
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	text := "a broker answers there now."
	if err := doctor.Answers(ctx, doctor.Options{NATS: l.nats, Creds: l.creds, TLS: l.tls}); err != nil {
		text = fmt.Sprintf("no broker answers there now: %v.", err)
	}
	if l.unnamed {
		text += " To name another fabric, install with --nats."
	}
	fmt.Fprintf(in.stdout, "The hooks will ask the fabric at %s; %s\n", bus.RedactURL(l.nats), text)
}

// sayUnchanged names the file that has no hooks of agentshim, and the files of other scopes that do.
func (in *installing) sayUnchanged() {
	read := func(s install.Scope) install.Found {
		f, _ := install.Find(in.Machine, in.Runtime, s) // without a path, where the file cannot be known
		return f
	}
	where := read(in.Scope).Path
	fmt.Fprintf(in.stdout, "%s has no hooks of agentshim in %s (scope %s); agentshim changed nothing\n", in.Runtime, where, in.Scope)
	for _, s := range install.Scopes(in.Runtime) {
		if f := read(s); len(f.Hooks) > 0 && f.Path != where {
			fmt.Fprintf(in.stdout, "%s has hooks of agentshim; remove them with 'agentshim uninstall %s --%s'\n", f.Path, in.Runtime, s)
		}
	}
	if in.Scope == install.Project {
		fmt.Fprintln(in.stdout, "To remove the hooks of another project, run the command in its folder.")
	}
}

// prepare determines the settings that the command line does not name.
func (in *installing) prepare(c *cobra.Command) (err error) {
	if err := in.fromCommandLine(c); err != nil {
		return err
	}
	if err := in.trustable(); err != nil {
		return err
	}
	switch {
	case in.managed:
		in.Scope = install.Managed
	case in.project:
		in.Scope = install.Project
	default:
		in.Scope = install.User
	}
	unreachable := in.Hook.Unreachable // the hooks keep an empty one
	if err := checkUnreachable(&unreachable, false); err != nil {
		return err
	}
	if in.Machine, err = machine(in.Machine.Root); err != nil {
		return err
	}
	in.findDaemon()
	if in.Hook.Shim == "" {
		if in.Hook.Shim, err = thisProgram(); err != nil {
			return fmt.Errorf("finding the path of agentshim: %w; name it with --shim", err)
		}
	}
	return in.know(c.Context())
}

// findDaemon finds where the machine's daemon listens, and where its token is.
func (in *installing) findDaemon() {
	if in.Hook.URL == "" {
		return
	}
	place := daemon.Place{State: cmp.Or(in.Hook.State, program.OwnState())}
	card, err := place.ReadCard()
	if err != nil {
		card = daemon.Card{} // no daemon has run; use its default address
	}
	in.Hook.TokenFile = cmp.Or(card.TokenFile, place.Token())
	if in.Hook.URL == thisDaemon {
		in.Hook.URL = cmp.Or(card.URL, "http://"+daemon.DefaultHTTP)
	}
}

// thisProgram returns the path of this program, without resolving links to the current version.
func thisProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if strings.Contains(self, "/go-build") {
		return "", errors.New("`go run` deletes this program when it ends, so the runtime would not find it; " +
			"build it with 'go build -o bin/ ./cmd/agentshim' and run bin/agentshim install, or name another program with --shim")
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	a, errA := os.Stat(called)
	b, errB := os.Stat(self)
	if err == nil && errA == nil && errB == nil && os.SameFile(a, b) {
		return called, nil
	}
	return self, nil
}

// know finds out which version of the runtime is installed, but not in an image.
func (in *installing) know(ctx context.Context) error {
	switch {
	case in.version != "":
		v, ok := probe.ParseVersion(in.version)
		if !ok {
			return program.UsageError("--runtime-version is %q; write one such as 2.1.295", in.version)
		}
		in.Version = v
	case in.Machine.Root == "":
		v, err := probe.AskVersion(ctx, install.Program(in.Runtime))
		if err != nil && !errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintf(in.stderr, "agentshim: asking %s for its version: %v; name the version with --runtime-version\n", install.Label(in.Runtime), err)
		}
		in.Version = v
		in.note()
	}
	return nil
}

// note stores the version for the hooks, which have no time to ask the runtime.
func (in *installing) note() {
	state := cmp.Or(in.Hook.State, program.OwnState())
	if !in.Version.Known() || in.dryRun || install.Foreign(state) {
		return
	}
	if err := shimstate.Folder(state).NoteVersion(in.Runtime, in.Version.String()); err != nil {
		fmt.Fprintf(in.stderr, "agentshim: storing the version of the runtime: %v; sessions are shown without a version\n", err)
	}
}

// fromCommandLine removes settings of the environment, which may change, and makes paths absolute.
func (in *installing) fromCommandLine(c *cobra.Command) (err error) {
	for name, value := range map[string]*string{"agent": &in.Hook.Agent, "nats": &in.Hook.NATS, "creds": &in.Hook.Creds,
		"tls-ca": &in.Hook.TLS.CA, "tls-cert": &in.Hook.TLS.Cert, "tls-key": &in.Hook.TLS.Key,
		"state": &in.Hook.State, "unreachable": &in.Hook.Unreachable, "http": &in.Hook.URL, "shim": &in.Hook.Shim} {
		if !program.Explicit(c.Flags(), name) {
			*value = ""
		}
	}
	if !program.Explicit(c.Flags(), "timeout") {
		in.Hook.Timeout = 0 // the default
	}
	for _, path := range []*string{&in.Hook.Creds, &in.Hook.State, &in.Hook.TLS.CA, &in.Hook.TLS.Cert, &in.Hook.TLS.Key} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

func machine(root string) (m install.Machine, err error) {
	if root != "" {
		if root, err = filepath.Abs(root); err != nil {
			return m, fmt.Errorf("--root: %w", err)
		}
	}
	m = install.Machine{Root: root, Env: os.Getenv, OS: runtime.GOOS}
	m.Home, _ = os.UserHomeDir() // an error reports an unknown folder where it is needed
	m.Dir, _ = os.Getwd()
	return m, nil
}

// trustable rejects --trust where it is not needed and where it cannot work.
func (in *installing) trustable() error {
	switch {
	case !in.trust:
		return nil
	case in.Runtime != "codex" || in.managed:
		return program.UsageError("--trust works only for codex without --managed; leave it out, nothing else needs it")
	case in.Machine.Root != "":
		return program.UsageError("--trust talks to the Codex of this machine and does not work with --root; trust the hooks when the image runs")
	}
	return nil
}

// trustCodex makes Codex trust the hooks of agentshim, or forget them.
func (in *installing) trustCodex(ctx context.Context, trust bool) error {
	n, err := in.tellCodex(ctx, trust)
	if err != nil {
		return fmt.Errorf("the hooks are installed, but Codex skips them because it does not trust them yet: %w; run codex, enter /hooks, and trust those of agentshim", err)
	}
	if n > 0 && trust {
		fmt.Fprintf(in.stdout, "Codex trusts %d hooks of agentshim now\n", n)
	}
	return nil
}

// tellCodex makes Codex trust, or forget, the hooks in the installation's own file, and counts them.
func (in *installing) tellCodex(ctx context.Context, trust bool) (int, error) {
	ours, err := install.Find(in.Machine, in.Runtime, in.Scope)
	if err != nil {
		return 0, err
	}
	return probe.TrustCodex(ctx, in.Machine.Dir, trust, func(h *probe.CodexHook) bool {
		source, err := filepath.EvalSymlinks(h.Source)
		return err == nil && source == ours.Path && h.TrustStatus != "managed" &&
			slices.ContainsFunc(ours.Hooks, func(o install.Owned) bool { return o.Line == h.Command })
	})
}

// forget makes Codex forget the hooks of agentshim, if Codex is installed.
func (in *installing) forget(ctx context.Context) {
	if in.Runtime != "codex" || in.managed || in.dryRun || in.Machine.Root != "" || !in.Version.Known() {
		return
	}
	if err := in.trustCodex(ctx, false); err != nil {
		fmt.Fprintf(in.stderr, "agentshim: Codex still lists the hashes of removed hooks, which does no harm: %v\n", errors.Unwrap(err))
	}
}

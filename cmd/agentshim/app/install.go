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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/judge"
	"github.com/hookfabric/hookfabric/cmd/agentshim/kept"
	"github.com/hookfabric/hookfabric/cmd/agentshim/probe"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// thisDaemon stands for the URL of the machine's daemon.
const thisDaemon = "daemon"

// installing is one call of `agentshim install` or `agentshim uninstall`.
type installing struct {
	install.Request
	user, project, managed bool
	dryRun, trust          bool
	version                string

	stdout, stderr io.Writer
}

func installCommand() *cobra.Command {
	var in installing
	c := &cobra.Command{
		Use:   "install RUNTIME",
		Short: "Have an agent runtime ask the fabric",
		Long: "install writes agentshim into the configuration of an agent runtime: " + strings.Join(install.Names(), ", ") + ".\n" +
			"What is there stays, a copy of it is kept beside it, and a second installation changes nothing.\n\n" +
			"Only flags of the command line are written into the configuration, none that come from the environment.",
		Args: in.runtime,
		RunE: func(c *cobra.Command, _ []string) error { return in.run(c, in.Install) },
	}
	in.flags(c)
	f, h := c.Flags(), &in.Hook
	f.StringVar(&h.Shim, "shim", "", "the path of agentshim as the runtime will find it; default: of this program")
	f.StringVar(&h.Agent, "agent", "", "the agent's id; default: what each event says")
	f.StringVar(&h.NATS, "nats", "", "the fabric's NATS URL; the hooks do not use the machine's daemon then")
	f.StringVar(&h.Creds, "creds", "", "credentials file")
	program.TLSFlags(f, &h.TLS)
	f.StringVar(&h.State, "state", "", "folder for what the agent's next shim must know")
	f.DurationVar(&h.Timeout, "timeout", time.Minute, "how long the runtime waits; the shim answers before that")
	f.StringVar(&h.Unreachable, "unreachable", "", "what to do with tool calls and prompts that nobody judged: deny or allow")
	f.StringVar(&h.URL, "http", "", "have the runtime ask the daemon at this URL instead of starting agentshim")
	f.Lookup("http").NoOptDefVal = thisDaemon
	f.BoolVar(&h.Approve, "auto-approve", false, "also ask the fabric where the runtime would ask its user")
	f.BoolVar(&h.Models, "models", false, "also ask at calls of the model, where the runtime has hooks for them")
	f.BoolVar(&in.trust, "trust", false, "have Codex trust the hooks, which it skips otherwise")
	f.StringVar(&in.version, "runtime-version", "", "the version of the runtime; default: what it says itself")
	return c
}

func uninstallCommand() *cobra.Command {
	var in installing
	c := &cobra.Command{
		Use:   "uninstall RUNTIME",
		Short: "Take agentshim out of a runtime's configuration again",
		Long: "uninstall takes the hooks of agentshim out of the configuration of an agent runtime, and nothing else.\n" +
			"If nothing else was changed since they were installed, the file is as it was before, to the byte.",
		Args: in.runtime,
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

// flags are those of both commands.
func (in *installing) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&in.user, "user", false, "for all agents of this user; the default")
	f.BoolVar(&in.project, "project", false, "for agents that work in this folder")
	f.BoolVar(&in.managed, "managed", false, "for all agents of this machine; users can not change it")
	program.Apart(c, "user", "project", "managed")
	f.BoolVar(&in.dryRun, "dry-run", false, "show what would be changed, and change nothing")
	f.StringVar(&in.Machine.Root, "root", "", "folder to put before all paths of the system and of homes, to prepare an image")
}

// runtime takes the one argument.
func (in *installing) runtime(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return program.UsageError("write 'agentshim %s RUNTIME' with one of %s", c.Name(), strings.Join(install.Names(), ", "))
	}
	in.Runtime = args[0]
	return nil
}

// run plans, and does it or shows it.
func (in *installing) run(c *cobra.Command, plan func(context.Context) (install.Plan, error)) error {
	in.stdout, in.stderr = c.OutOrStdout(), c.ErrOrStderr()
	if err := in.prepare(c); err != nil {
		return err
	}
	p, err := plan(c.Context())
	if err != nil {
		return err
	}
	if in.dryRun {
		return in.show(&p)
	}
	said, err := p.Apply(time.Now())
	for _, s := range said {
		fmt.Fprintln(in.stdout, s)
	}
	if len(p.Changes) == 0 {
		fmt.Fprintf(in.stdout, "%s has no hooks of agentshim there; nothing was changed\n", in.Runtime)
	}
	if err != nil {
		return err
	}
	if in.trust {
		return in.trustCodex(c.Context(), true)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(in.stdout, n)
	}
	return nil
}

func (in *installing) show(p *install.Plan) error {
	if !p.Changed() {
		_, err := fmt.Fprintln(in.stdout, "nothing would be changed")
		return err
	}
	_, err := io.WriteString(in.stdout, p.Diff())
	return err
}

// prepare finds out what the command line does not say.
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
	if u := in.Hook.Unreachable; u != "" && u != judge.UnreachableDeny && u != judge.UnreachableAllow {
		return program.UsageError("--unreachable is %q; write deny or allow", u)
	}
	if in.Machine, err = machine(in.Machine.Root); err != nil {
		return err
	}
	in.findDaemon()
	if in.Hook.Shim == "" {
		if in.Hook.Shim, err = thisProgram(); err != nil {
			return fmt.Errorf("where agentshim lies can not be found: %w; write it with --shim", err)
		}
	}
	return in.know(c.Context())
}

// findDaemon finds where the machine's daemon listens, and where its token is.
func (in *installing) findDaemon() {
	if in.Hook.URL == "" {
		return
	}
	place := daemon.Place{State: cmp.Or(in.Hook.State, program.StateHome())}
	card, err := place.ReadCard()
	if err != nil {
		card = daemon.Card{} // none ever ran; it will be where it usually is
	}
	in.Hook.TokenFile = cmp.Or(card.TokenFile, place.Token())
	if in.Hook.URL == thisDaemon {
		in.Hook.URL = cmp.Or(card.URL, "http://"+daemon.DefaultHTTP)
	}
}

// thisProgram is where this program was found, so that a link to the version of
// the day stays one.
func thisProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if strings.Contains(self, "/go-build") {
		return "", errors.New("this program is one that `go run` throws away when it ends, and the runtime would not find it; " +
			"build it ('go build -o bin/ ./cmd/agentshim') and install by that, or name one with --shim")
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

// know finds out which version of the runtime is there: that of an image can
// not be asked.
func (in *installing) know(ctx context.Context) error {
	switch {
	case in.version != "":
		v, ok := probe.ParseVersion(in.version)
		if !ok {
			return program.UsageError("--runtime-version is %q; write one such as 2.1.295", in.version)
		}
		in.Version = v
	case in.Machine.Root == "":
		in.Version = probe.VersionOf(ctx, install.Program(in.Runtime))
		in.note()
	}
	return nil
}

// note writes the version down for the hooks, which can not ask for it.
func (in *installing) note() {
	state := cmp.Or(in.Hook.State, program.StateHome())
	if !in.Version.Known() || in.dryRun || install.Foreign(state) {
		return
	}
	if err := kept.Folder(state).NoteVersion(in.Runtime, in.Version.String()); err != nil {
		fmt.Fprintf(in.stderr, "agentshim: the version of the runtime could not be written down, so sessions will not say it: %v\n", err)
	}
}

// fromCommandLine takes out what came from the environment: that may differ from
// one process to the next, and a configuration stays. Files are named so that they
// are found from every folder.
func (in *installing) fromCommandLine(c *cobra.Command) (err error) {
	for name, value := range map[string]*string{"agent": &in.Hook.Agent, "nats": &in.Hook.NATS, "creds": &in.Hook.Creds,
		"tls-ca": &in.Hook.TLS.CA, "tls-cert": &in.Hook.TLS.Cert, "tls-key": &in.Hook.TLS.Key,
		"state": &in.Hook.State, "unreachable": &in.Hook.Unreachable, "http": &in.Hook.URL, "shim": &in.Hook.Shim} {
		if !program.Explicit(c.Flags(), name) {
			*value = ""
		}
	}
	if !program.Explicit(c.Flags(), "timeout") {
		in.Hook.Timeout = 0 // as long as it is by default
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

// machine is this one, below root.
func machine(root string) (m install.Machine, err error) {
	if root != "" {
		if root, err = filepath.Abs(root); err != nil {
			return m, fmt.Errorf("--root: %w", err)
		}
	}
	m = install.Machine{Root: root, Env: os.Getenv, OS: runtime.GOOS}
	m.Home, _ = os.UserHomeDir() // where it is unknown and needed, that is said
	m.Dir, _ = os.Getwd()
	return m, nil
}

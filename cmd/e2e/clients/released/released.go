// Package released knows the released coding agents that the fabric is tried
// with, and fetches them from the npm registry into a folder of this machine's
// caches. Nothing of them is part of this project.
package released

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Client is one release of a coding agent.
type Client struct {
	// Name is what the shim calls the runtime, and the name of its command.
	Name string
	// Package and Version are its name and release in the npm registry.
	Package, Version string
	// Finish is a script of the package that must run once it is unpacked; empty:
	// none has to. The packages' own install scripts are not run.
	Finish string
	// Library: it has no command; what asks for one gets the package's folder.
	Library bool
}

// AgentSDK is the Claude Agent SDK, which is no client by itself: agents are
// written with it. The tests of bus/agent/typescript try it.
func AgentSDK() Client {
	return Client{Name: "claude-agent-sdk", Package: "@anthropic-ai/claude-agent-sdk", Version: "0.3.332", Library: true}
}

// All are the clients, with the releases whose protocols were measured. To try
// another release, write its number here.
func All() []Client {
	return []Client{
		{Name: "claude", Package: "@anthropic-ai/claude-code", Version: "2.1.332", Finish: "install.cjs"},
		{Name: "codex", Package: "@openai/codex", Version: "0.169.0"},
		{Name: "gemini", Package: "@google/gemini-cli", Version: "0.61.0"},
		{Name: "copilot", Package: "@github/copilot", Version: "1.0.102"},
		{Name: "qwen", Package: "@qwen-code/qwen-code", Version: "0.24.4"},
		{Name: "opencode", Package: "opencode-ai", Version: "1.18.33", Finish: "postinstall.mjs"},
	}
}

// ErrUnavailable is why nothing can be fetched here, which is nobody's fault:
// there is no npm, or no registry.
var ErrUnavailable = errors.New("not to be had on this machine")

// Named are the clients of these names.
func Named(names ...string) ([]Client, error) {
	var found []Client
	for _, name := range names {
		i := slices.IndexFunc(All(), func(c Client) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown client %q; write one of those in cmd/e2e/clients/released", name)
		}
		found = append(found, All()[i])
	}
	return found, nil
}

// Dir is the folder that the client is fetched into.
func (c Client) Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for caches: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "hookfabric", "clients", c.Name+"@"+c.Version), nil
}

// Command is the path of the client's program; an error that is
// [os.ErrNotExist]: the client was not fetched.
func (c Client) Command() (string, error) {
	dir, err := c.Dir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "node_modules", ".bin", c.Name)
	if c.Library {
		path = filepath.Join(dir, "node_modules", filepath.FromSlash(c.Package))
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s %s is not in the cache: %w; run make clients", c.Name, c.Version, err)
	}
	return path, nil
}

// Fetch fetches the client unless it is there. An error that is
// [ErrUnavailable]: it cannot be had here.
func (c Client) Fetch(ctx context.Context) error {
	if _, err := c.Command(); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir, err := c.Dir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	// It appears under its name only when it is whole.
	making, err := os.MkdirTemp(filepath.Dir(dir), ".making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(making)
	if err := c.install(ctx, making); err != nil {
		return fmt.Errorf("fetching %s@%s: %w", c.Package, c.Version, err)
	}
	if err := os.Rename(making, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func (c Client) install(ctx context.Context, dir string) error {
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	out, err := run(ctx, dir, "npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-update-notifier", "--fetch-retries=1", c.Package+"@"+c.Version)
	if err != nil {
		if unreachable(out) {
			err = errors.Join(ErrUnavailable, err)
		}
		return fmt.Errorf("%w; npm said: %s", err, out)
	}
	if c.Finish == "" {
		return nil
	}
	of := filepath.Join(dir, "node_modules", filepath.FromSlash(c.Package))
	if out, err := run(ctx, of, "node", c.Finish); err != nil {
		return fmt.Errorf("%s: %w; it said: %s", c.Finish, err, out)
	}
	return nil
}

// unreachable reports whether npm could not talk to its registry, by the codes
// with which it says so.
func unreachable(said string) bool {
	return regexp.MustCompile(`(?m)^npm (error|ERR!) code (ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONN[A-Z]+|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|E5\d\d)\s*$`).
		MatchString(said)
}

// patience is how long a package may take to come, on a slow line.
const patience = 10 * time.Minute

// run runs a program in a group of its own, and ends all of the group with ctx.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s took longer than %v", name, patience))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return strings.TrimSpace(string(out)), err
}

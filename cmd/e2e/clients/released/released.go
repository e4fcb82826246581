// Package released lists the released coding agents that the tests use, and fetches them from the npm registry into a
// cache folder. They are not part of this project.
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
	// Name is the shim's name of the runtime, and the name of its command.
	Name string
	// Package and Version are its name and release in the npm registry.
	Package, Version string
	// Finish is a script of the package that must run after unpacking; empty: none. Install scripts of packages are
	// not run.
	Finish string
	// Library: it has no command, and Command returns the folder of the package.
	Library bool
}

// AgentSDK returns the Claude Agent SDK, a library for agents. The tests of bus/agent/sdktest use it.
func AgentSDK() Client {
	return Client{Name: "claude-agent-sdk", Package: "@anthropic-ai/claude-agent-sdk", Version: "0.3.332", Library: true}
}

// All returns the clients, with the releases whose protocols were measured. To test another release, change its number.
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

// ErrUnavailable means that clients cannot be fetched here: npm or its registry is missing.
var ErrUnavailable = errors.New("not to be had on this machine")

// Named returns the clients with these names.
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

// Dir returns the folder of the fetched client.
func (c Client) Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for caches: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "hookfabric", "clients", c.Name+"@"+c.Version), nil
}

// Command returns the path of the client's program; an [os.ErrNotExist] means that the client was not fetched.
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

// Fetch fetches the client, unless it was fetched before. [ErrUnavailable] means that it cannot be fetched here.
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
	// Rename the folder only when it is complete.
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

// unreachable reports whether npm could not reach its registry, by its error codes.
func unreachable(output string) bool {
	return regexp.MustCompile(`(?m)^npm (error|ERR!) code (ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONN[A-Z]+|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|E5\d\d)\s*$`).
		MatchString(output)
}

// fetchTimeout bounds the fetch of a package on a slow network.
const fetchTimeout = 10 * time.Minute

// run runs a program in a new process group, and ends the group with ctx.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("%s took longer than %v", name, fetchTimeout))
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

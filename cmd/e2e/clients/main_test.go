// Package clients_test runs released coding agents with the fabric's hooks installed, against a scripted model,
// because only the client itself shows the effect of an answer.
//
// The clients are not part of this project. `make clients` fetches and tests them; without a cache of clients the
// tests skip. HOOKFABRIC_CLIENTS has the names of the clients to test, separated by commas, which must then be in the
// cache; or none; empty: those in the cache.
//
// The tests run in a network namespace with only a loopback interface, so that no client reaches its vendor. Where no
// namespace can be made, only proxies that do not exist prevent it, and the tests log that.
package clients_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/released"
	"github.com/hookfabric/hookfabric/cmd/internal/netns"
)

// What the process outside of the namespace tells the one inside.
const (
	variable    = "HOOKFABRIC_CLIENTS"
	programsVar = "HOOKFABRIC_CLIENTS_PROGRAMS" // the folder of the fabric's programs
	openVar     = "HOOKFABRIC_CLIENTS_OPEN"     // set: there is no namespace
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == echoServer {
		if err := serveEcho(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", echoServer, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(programsVar) != "" {
		if os.Getenv(openVar) == "" {
			if err := netns.RaiseLoopback(); err != nil {
				fmt.Fprintf(os.Stderr, "clients: the loopback interface of the namespace: %v\n", err)
				os.Exit(1)
			}
		}
		os.Exit(m.Run())
	}
	if len(present()) == 0 {
		os.Exit(m.Run()) // every test says what it skips
	}
	code, err := outside()
	if err != nil {
		fmt.Fprintf(os.Stderr, "clients: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// wanted are the clients that are to be tried, whether they are there or not.
func wanted() ([]released.Client, error) {
	switch names := os.Getenv(variable); names {
	case "":
		return released.All(), nil
	case "none":
		return nil, nil
	default:
		return released.Named(strings.Split(names, ",")...)
	}
}

// present are those of them that are there.
func present() (all []released.Client) {
	clients, _ := wanted() // a name that is wrong is a test's business
	for _, c := range clients {
		if _, err := c.Command(); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// outside builds the programs and runs the tests in a namespace.
func outside() (int, error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "clients-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	const module = "github.com/hookfabric/hookfabric/cmd/"
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), module+"broker", module+"agentshim")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	inside := func(env ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self, os.Args[1:]...)
		cmd.Env = append(os.Environ(), append(env, programsVar+"="+dir)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
		tie(cmd)
		return cmd
	}
	cmd := inside()
	netns.Isolate(cmd)
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "NO NETWORK NAMESPACE HERE (%v): the clients could reach the network if they ignored their proxies\n", err)
		cmd = inside(openVar + "=1")
		if err := cmd.Start(); err != nil {
			return 0, err
		}
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() <= 0 {
		return 0, fmt.Errorf("the tests inside of the namespace: %w", err)
	}
	return cmd.ProcessState.ExitCode(), nil
}

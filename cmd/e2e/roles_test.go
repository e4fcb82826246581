package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// natsServer is a NATS server of a user: JetStream in DIR, on a free loopback port or on the named one.
func natsServer(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("nats-server", flag.ContinueOnError)
	dir := flags.String("dir", "", "where JetStream keeps its data")
	listen := flags.String("listen", "127.0.0.1:0", "address")
	if flags.Parse(args) != nil {
		return 2
	}
	host, p, err := net.SplitHostPort(*listen)
	port, portErr := strconv.Atoi(p)
	if err != nil || portErr != nil {
		fmt.Fprintln(stderr, "nats-server: no address:", *listen)
		return 2
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		Host: host, Port: port, JetStream: true, StoreDir: *dir, NoSigs: true, MaxPayload: schema.MaxPayload,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30,
	})
	if err != nil {
		fmt.Fprintln(stderr, "nats-server:", err)
		return 1
	}
	go s.Start()
	if !s.ReadyForConnections(patience) {
		fmt.Fprintln(stderr, "nats-server: not ready")
		return 1
	}
	fmt.Fprintln(stdout, "ready", s.ClientURL())
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return 0
}

// goHooks is a worker of a user. Its hooks wait up to a tenth of a second, as hooks that query a service do.
func goHooks(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gohooks", flag.ContinueOnError)
	url := flags.String("nats", "", "the fabric")
	name := flags.String("name", "", "the worker's id")
	pool := flags.String("pool", "crew", "the pool")
	if flags.Parse(args) != nil {
		return 2
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	w := workers.New(workers.Options{
		Name: *name, Pools: []string{*pool}, Logger: log,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: goRunner{}},
	})
	nc, err := bus.Connect(ctx, bus.Options{URL: *url, Name: workers.ConnectionPrefix + *name, Logger: log, OnLeaving: w.Leave})
	if err != nil {
		fmt.Fprintln(stderr, "gohooks:", err)
		return 1
	}
	defer nc.Close()
	fmt.Fprintln(stdout, "connected")
	err = workers.Run(ctx, nc, w)
	if err != nil {
		fmt.Fprintln(stderr, "gohooks:", err)
		return 1
	}
	return 0
}

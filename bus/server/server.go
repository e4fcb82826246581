package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/crypto/bcrypt"
)

// The default limits of a server.
const (
	DefaultMaxMemory = 256 << 20
	DefaultMaxStore  = 10 << 30
)

const (
	startTimeout = 30 * time.Second
	// maxPending bounds the unsent data of one connection before the server closes it. A broker
	// that reads the events of all agents may get several of the largest messages at one moment.
	// With half of this limit six of them closed its connection, with a quarter four.
	maxPending = 8 * schema.MaxPayload
	// writeDeadline bounds a write to a client that does not read.
	writeDeadline = 10 * time.Second
	pingEvery     = 15 * time.Second

	systemAccount = "$SYS"
	systemUser    = "system"
)

// Options configure a server.
type Options struct {
	// Dir is the server's data directory; it is created if it is missing.
	Dir string
	// Listen is an address such as 127.0.0.1:4222, with port 0 for any free one; empty: only this
	// process can connect. Beyond loopback it needs credentials and TLS.
	Listen string
	// TLS is the server's certificate, and the authorities for certificates that clients must
	// have; empty: no TLS.
	TLS certs.Files
	// Cluster configures a cluster; nil: a single server.
	Cluster *Cluster
	// Leaf configures leaf nodes; nil: none.
	Leaf *Leaf
	// MaxMemory limits the streams in memory; 0: [DefaultMaxMemory].
	MaxMemory int64
	// MaxStore limits the streams on disk; 0: [DefaultMaxStore]. It is lowered to the space of
	// the disk.
	MaxStore int64
	// Auth is the folder of a realm (bus/server/realm), whose credentials clients need and whose
	// permissions apply. Empty: clients need no credentials and may do everything.
	Auth string
	// Tenant is the tenant of [Server.Connect]; empty: the default one. It needs Auth.
	Tenant string
	// SyncInterval is the interval of syncs to disk; 0: before each acknowledgement.
	SyncInterval time.Duration
	// Logger gets the server's log; nil: no log.
	Logger *slog.Logger
}

// A Server is a running nats-server.
type Server struct {
	nats *server.Server
	dir  string
	lock *dirLock
	// jetStream is the configuration for a restart of JetStream.
	jetStream server.JetStreamConfig
	password  string
	listens   bool
	cluster   *Cluster     // nil: a single server
	leaf      *Leaf        // nil: no leaf nodes
	sequences *sequenceLog // nil: a leaf, which stores nothing
	auth      *auth        // nil: clients need no credentials
	// account is the account of Connect.
	account *server.Account
	health  probe[error]
	mending probe[error] // locked while JetStream restarts
}

// Start runs a server and returns when it is ready. It waits until ctx ends for a large store to be read.
func Start(ctx context.Context, o Options) (*Server, error) {
	host, port, err := o.clientAddress()
	if err != nil {
		return nil, err
	}
	if err := o.checkFolders(); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, o, host, port, lock)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return s, nil
}

func start(ctx context.Context, o Options, host string, port int, lock *dirLock) (*Server, error) {
	room, err := checkRoom(o.Dir, o.leastRoom())
	if err != nil {
		return nil, err
	}
	for _, addr := range o.addresses() {
		if err := checkFree(ctx, addr); err != nil {
			return nil, err
		}
	}
	s := &Server{dir: o.Dir, lock: lock, password: rand.Text(), listens: o.Listen != "", cluster: o.Cluster, leaf: o.Leaf, mending: probe[error]{within: mendsWithin}}
	if s.auth, err = openAuth(o); err != nil {
		return nil, err
	}
	opts, err := s.serverOptions(o, room)
	if err != nil {
		return nil, err
	}
	opts.Host, opts.Port = host, port
	if err := errors.Join(o.secure(opts), o.join(opts), o.branch(opts)); err != nil {
		return nil, err
	}
	if opts.ServerName, err = o.identify(); err != nil {
		return nil, err
	}
	if s.IsLeaf() {
		opts.ServerName = leafName()
	}
	if !s.IsLeaf() {
		store := filepath.Join(opts.StoreDir, server.JetStreamStoreDir)
		if err := s.checkStored(ctx, store); err != nil {
			return nil, fmt.Errorf("the embedded NATS server on %s did not start: %w", o.Dir, err)
		}
		s.sequences = &sequenceLog{dir: o.Dir, store: store, sync: o.SyncInterval, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), written: make(map[string]string)}
	}
	if s.auth != nil {
		s.auth.demand(opts)
		if err := s.auth.adopt(opts.StoreDir, o.Cluster != nil); err != nil {
			return nil, err
		}
	}
	s.jetStream = server.JetStreamConfig{
		StoreDir: opts.StoreDir, MaxMemory: opts.JetStreamMaxMemory, MaxStore: opts.JetStreamMaxStore,
		SyncAlways: opts.SyncAlways, SyncInterval: opts.SyncInterval, Strict: !opts.NoJetStreamStrict,
	}
	if s.nats, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("the embedded NATS server: %w", err)
	}
	return s, s.run(ctx, o)
}

// run starts the server and waits until it is ready.
func (s *Server) run(ctx context.Context, o Options) error {
	log := newLogger(o.Logger)
	s.nats.SetLoggerV2(log, false, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.nats.Start()
	}()
	var err error
	select {
	case <-started:
		err = log.fatal()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !s.nats.ReadyForConnections(startTimeout) {
		err = fmt.Errorf("it was not ready after %v", startTimeout)
	}
	if err == nil && !s.IsLeaf() && !s.nats.JetStreamEnabled() {
		err = errors.New("JetStream could not be started")
	}
	if err == nil {
		err = s.remedied(s.whole())
	}
	if err == nil {
		err = s.open()
	}
	if err == nil && s.sequences != nil {
		s.sequences.nats = s.nats
		s.sequences.begin()
	}
	if err != nil {
		s.shutdown()
		<-started
		return fmt.Errorf("the embedded NATS server on %s did not start: %w", o.Dir, err)
	}
	return nil
}

// open loads the account of Connect.
func (s *Server) open() (err error) {
	if s.auth == nil {
		s.account = s.nats.GlobalAccount()
		return nil
	}
	if err = s.auth.begin(s); err == nil {
		s.account, err = s.nats.LookupAccount(s.auth.tenant.Key)
	}
	return err
}

func (s *Server) serverOptions(o Options, room int64) (*server.Options, error) {
	sys := server.NewAccount(systemAccount)
	system, err := hash(s.password)
	if err != nil {
		return nil, err
	}
	return &server.Options{
		DontListen: o.Listen == "", NoSigs: true,
		DisableJetStreamBanner: true,
		MaxPayload:             schema.MaxPayload, MaxPending: maxPending, MaxControlLine: bus.MaxCreds,
		WriteDeadline: writeDeadline, PingInterval: pingEvery, MaxPingsOut: 2, AuthTimeout: greetTime.Seconds(),
		JetStream: true, StoreDir: filepath.Join(o.Dir, storeFolder),
		JetStreamMaxMemory: cmp.Or(o.MaxMemory, DefaultMaxMemory),
		JetStreamMaxStore:  min(cmp.Or(o.MaxStore, DefaultMaxStore), room),
		SyncAlways:         o.SyncInterval == 0, SyncInterval: o.SyncInterval,
		// With only the system account configured, the server puts clients without credentials into
		// its default account.
		Accounts: []*server.Account{sys}, SystemAccount: systemAccount,
		Users: []*server.User{{Username: systemUser, Password: system, Account: sys}},
	}, nil
}

// hash hashes a password for the server. The lowest cost suffices, because the passwords are random and
// live only as long as the process.
func hash(password string) (string, error) {
	b, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	return string(b), err
}

// InProcessConn implements the in-process server of [bus.Options].
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// Connect connects in process. Without credentials in the options the client may do everything in its
// tenant. The URL of the options is ignored.
func (s *Server) Connect(ctx context.Context, o bus.Options) (*nats.Conn, error) {
	o.InProcess, o.Within = s, bus.DialLimit // a busy server is the only one, so wait for it
	if s.auth != nil {
		o = as(o, s.auth.user)
	}
	return bus.Connect(ctx, o)
}

// ConnectSystem connects in process to the system account, in which the server publishes events about
// clients. Other processes cannot connect to it.
func (s *Server) ConnectSystem(ctx context.Context, o bus.Options) (*nats.Conn, error) {
	o.InProcess = s
	if s.auth != nil {
		o.JWT, o.Seed = s.auth.system.JWT, s.auth.system.Seed
	} else {
		o.User, o.Password = systemUser, s.password
	}
	return bus.Connect(ctx, o)
}

// Room returns how many bytes the streams of its tenant may have on disk.
func (s *Server) Room() int64 {
	if s.auth != nil && s.auth.tenant.Limits.Disk > 0 {
		return min(s.jetStream.MaxStore, s.auth.tenant.Limits.Disk)
	}
	return s.jetStream.MaxStore
}

// ClientURL returns the address for clients outside this process; empty: it does not listen.
func (s *Server) ClientURL() string {
	if !s.listens {
		return ""
	}
	return s.nats.ClientURL()
}

// shutdown stops the server and what runs beside it.
func (s *Server) shutdown() {
	if s.auth != nil {
		s.auth.end()
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// endGossip stops the exchange of realms, so that its connection does not look for another server while this
// one stops.
func (s *Server) endGossip() {
	if s.auth != nil {
		s.auth.gossip.end()
	}
}

// Close stops the server, waits until all data is on disk and releases the data directory. If ctx ends first,
// the directory stays locked until the process ends. In a cluster the server first hands over the leadership
// of its streams, and makes its clients move to other servers.
func (s *Server) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.mending.mu.Lock() // a restart of JetStream ends first
		defer s.mending.mu.Unlock()
		reached := s.sequences.close()
		if s.cluster != nil {
			s.endGossip()
			s.nats.LameDuckShutdown()
		}
		s.shutdown()
		s.sequences.leave(reached)
	}()
	select {
	case <-done:
		return s.lock.release()
	case <-ctx.Done():
		return fmt.Errorf("the embedded NATS server was still stopping: %w", context.Cause(ctx))
	}
}

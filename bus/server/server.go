package server

import (
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

// The limits of a server whose options do not say.
const (
	DefaultMaxMemory = 256 << 20
	DefaultMaxStore  = 10 << 30
)

const (
	startTimeout = 30 * time.Second
	// maxPending is what may wait for one connection before it is cut off: as many of the
	// largest messages as may come at one moment for a broker, which reads the events of all
	// agents. At half of that six of them cut it off, at a quarter four.
	maxPending = 8 * schema.MaxPayload
	// writeDeadline is how long who reads nothing may have that wait for him.
	writeDeadline = 10 * time.Second
	pingEvery     = 15 * time.Second

	systemAccount = "$SYS"
	systemUser    = "system"
)

// Options say where a server keeps its data and whom it listens to.
type Options struct {
	// Dir is the server's own data directory; it is made if it is not there.
	Dir string
	// Listen is an address such as 127.0.0.1:4222, with port 0 for any free one;
	// empty listens to nobody outside this process. One that other machines can
	// reach takes credentials and TLS.
	Listen string
	// TLS is the certificate that is shown to clients, and the authorities of those
	// that they must show; none: clients speak without TLS.
	TLS certs.Files
	// Cluster has the server be one of several that keep everything together; nil: it
	// is on its own.
	Cluster *Cluster
	// Leaf has the server take leaves, or be one; nil: neither.
	Leaf *Leaf
	// MaxMemory bounds the streams in memory; 0 is [DefaultMaxMemory].
	MaxMemory int64
	// MaxStore bounds the streams on disk; 0 is [DefaultMaxStore]. It is
	// lowered to what the disk can hold.
	MaxStore int64
	// Auth is the folder of a realm (bus/server/realm): everybody has to say who
	// they are, and may do what their credentials are for. Empty: nobody has to, and
	// everybody may do all.
	Auth string
	// Tenant is whose connections [Server.Connect] makes; empty: the default one's. It
	// needs Auth.
	Tenant string
	// SyncInterval is how often written data is forced onto the disk; 0 is
	// always, before it is acknowledged.
	SyncInterval time.Duration
	// Logger hears what the server says; nil is silence.
	Logger *slog.Logger
}

// A Server is a running nats-server.
type Server struct {
	nats *server.Server
	dir  string
	lock *dirLock
	// jetStream is how JetStream is started again.
	jetStream server.JetStreamConfig
	password  string
	listens   bool
	cluster   *Cluster // nil: the server is on its own
	leaf      *Leaf    // nil: it neither takes leaves nor is one
	notary    *notary  // nil: nothing is stored here
	auth      *auth    // nil: nobody has to say who they are
	// account is where Connect connects to.
	account *server.Account
}

// Start runs a server and returns when it is ready. What is wrong with the
// directory or the address is said in a sentence. Until ctx ends it waits for
// a large store to be read.
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
	s := &Server{dir: o.Dir, lock: lock, password: rand.Text(), listens: o.Listen != "", cluster: o.Cluster, leaf: o.Leaf}
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
		s.notary = &notary{dir: o.Dir, store: store, sync: o.SyncInterval, log: orSilent(o.Logger), written: make(map[string]string)}
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
	if err == nil && s.notary != nil {
		s.notary.nats = s.nats
		s.notary.begin()
	}
	if err != nil {
		s.shutdown()
		<-started
		return fmt.Errorf("the embedded NATS server on %s did not start: %w", o.Dir, err)
	}
	return nil
}

// open finds the account that this process connects to.
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
		JetStreamMaxMemory: orDefault(o.MaxMemory, DefaultMaxMemory),
		JetStreamMaxStore:  min(orDefault(o.MaxStore, DefaultMaxStore), room),
		SyncAlways:         o.SyncInterval == 0, SyncInterval: o.SyncInterval,
		// With no account but the system's, the server itself puts clients that
		// bring no credentials into its default account.
		Accounts: []*server.Account{sys}, SystemAccount: systemAccount,
		Users: []*server.User{{Username: systemUser, Password: system, Account: sys}},
	}, nil
}

func orSilent(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

func orDefault(v, def int64) int64 {
	if v == 0 {
		return def
	}
	return v
}

// hash makes the server keep no plain password. The cheapest cost will do: the
// passwords are random and live no longer than the process.
func hash(password string) (string, error) {
	b, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	return string(b), err
}

// InProcessConn makes a Server what [bus.Options] take as a server in this process.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// Connect connects in process, as an ordinary client that may do everything in its
// tenant, unless the options say who it is. Their URL is not used.
func (s *Server) Connect(ctx context.Context, o bus.Options) (*nats.Conn, error) {
	o.InProcess, o.Within = s, bus.DialLimit // there is no other server to go to, however much this one has to do
	if s.auth != nil {
		o = as(o, s.auth.user)
	}
	return bus.Connect(ctx, o)
}

// ConnectSystem connects in process to the system account, where the server
// tells of its clients' lives. Nobody outside this process can.
func (s *Server) ConnectSystem(ctx context.Context, o bus.Options) (*nats.Conn, error) {
	o.InProcess = s
	if s.auth != nil {
		o.JWT, o.Seed = s.auth.system.JWT, s.auth.system.Seed
	} else {
		o.User, o.Password = systemUser, s.password
	}
	return bus.Connect(ctx, o)
}

// Room is how much the streams of its tenant may hold on disk.
func (s *Server) Room() int64 {
	if s.auth != nil && s.auth.tenant.Limits.Disk > 0 {
		return min(s.jetStream.MaxStore, s.auth.tenant.Limits.Disk)
	}
	return s.jetStream.MaxStore
}

// ClientURL is where clients outside this process connect; empty if it does
// not listen.
func (s *Server) ClientURL() string {
	if !s.listens {
		return ""
	}
	return s.nats.ClientURL()
}

// shutdown stops what runs.
func (s *Server) shutdown() {
	if s.auth != nil {
		s.auth.end()
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// hush ends what this server tells the others of its realm: a connection of its own
// must not look for another server while this one stops.
func (s *Server) hush() {
	if s.auth != nil {
		s.auth.gossip.end()
	}
}

// Close stops the server, waits until everything is on disk and releases the
// data directory. When ctx ends first, the directory stays locked until the
// process ends. One of a cluster first hands over what it leads, and has its clients
// go to the others.
func (s *Server) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		left := s.notary.close()
		if s.cluster != nil {
			s.hush()
			s.nats.LameDuckShutdown()
		}
		s.shutdown()
		s.notary.leave(left)
	}()
	select {
	case <-done:
		return s.lock.release()
	case <-ctx.Done():
		return fmt.Errorf("the embedded NATS server was still stopping: %w", context.Cause(ctx))
	}
}

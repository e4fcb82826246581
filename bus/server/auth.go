package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// lookAtRealm is how often it is looked whether the realm changed: a revocation
// counts that much later at most.
const lookAtRealm = 500 * time.Millisecond

// authenticates reports whether clients have to say who they are.
func (o *Options) authenticates() bool { return o.Auth != "" }

// auth is how a server knows who may use it.
type auth struct {
	dir      string
	tenant   *realm.Tenant
	resolver *server.MemAccResolver
	operator *jwt.OperatorClaims
	// user and system are how this process itself connects.
	user, system realm.Credential
	log          *slog.Logger

	mu     sync.Mutex  // guards what follows
	seen   fs.FileInfo // the file that was read last
	known  *realm.Realm
	cutOff []cutOff // the users that are refused for a while
	said   string   // what is wrong with the one that is there now
	// unreadable says that something is, to others than follow.
	unreadable atomic.Bool
	// names are those of the credentials in known, by their public keys.
	names atomic.Pointer[map[string]string]

	gossip *gossip // nil: the server is on its own

	stop context.CancelFunc
	done sync.WaitGroup
}

// openAuth reads the realm in the options' folder; nil: nobody has to say who he is.
func openAuth(o Options) (*auth, error) {
	if o.Auth == "" {
		if o.Tenant != "" {
			return nil, fmt.Errorf("there is no tenant %q because this data directory has no realm; create one with `broker creds init`, or remove --tenant", o.Tenant)
		}
		return nil, o.unclaimed(nil)
	}
	a := &auth{dir: o.Auth, resolver: &server.MemAccResolver{}, log: orSilent(o.Logger), stop: func() {}}
	a.seen, _ = realm.Stat(a.dir) // before it is read, so that no change is missed
	known, err := realm.Read(a.dir)
	if err != nil {
		return nil, err
	}
	a.know(known)
	if a.tenant, err = a.known.Tenant(o.Tenant); err != nil {
		return nil, err
	}
	if err = o.unclaimed(a.known.Tenants); err != nil {
		return nil, err
	}
	if a.operator, err = jwt.DecodeOperatorClaims(a.known.Operator.JWT); err != nil {
		return nil, fmt.Errorf("reading the operator's claims: %w", err)
	}
	if a.user, err = a.known.Internal(a.tenant.Name, "broker", false); err != nil {
		return nil, err
	}
	if a.system, err = a.known.Internal("", "broker-system", true); err != nil {
		return nil, err
	}
	err = a.resolver.Store(a.known.System.Key, a.known.System.JWT)
	for _, t := range a.known.Tenants {
		err = errors.Join(err, a.resolver.Store(t.Key, t.JWT))
	}
	return a, err
}

// unclaimed refuses a store that belongs to none of the tenants, none at all where nobody has
// to say who they are: the realm that it belongs to is gone, or another one is in its place.
func (o *Options) unclaimed(tenants []realm.Tenant) error {
	store := filepath.Join(o.Dir, storeFolder, server.JetStreamStoreDir)
	accounts, err := os.ReadDir(store)
	if err != nil {
		return nil //nolint:nilerr // nothing is stored, or the server says that it cannot be read
	}
	others := ""
	for _, a := range accounts {
		if slices.ContainsFunc(tenants, func(t realm.Tenant) bool { return t.Key == a.Name() }) {
			return nil
		}
		if nkeys.IsValidPublicAccountKey(a.Name()) {
			others = filepath.Join(store, a.Name())
		}
	}
	switch {
	case others == "":
		return nil
	case tenants == nil:
		return fmt.Errorf("the data directory %s belongs to a broker that requires credentials, and its folder auth is missing: without it, every client could do everything; "+
			"restore the folder from a backup, or name another data directory", o.Dir)
	}
	return fmt.Errorf("the realm in the folder %s does not belong to %s; restore the right folder from a backup, or name another data directory", o.Auth, others)
}

// demand has a server ask everybody who they are.
func (a *auth) demand(opts *server.Options) {
	opts.Accounts, opts.Users = nil, nil
	opts.TrustedOperators = []*jwt.OperatorClaims{a.operator}
	opts.SystemAccount = a.known.System.Key
	opts.AccountResolver = a.resolver
	for _, r := range opts.LeafNode.Remotes {
		r.LocalAccount = a.tenant.Key
	}
	if opts.JsAccDefaultDomain != nil {
		delete(opts.JsAccDefaultDomain, globalAccount) // which the server does not take beside tenants
		for _, t := range a.known.Tenants {
			opts.JsAccDefaultDomain[t.Key] = ""
		}
	}
}

// globalStreams is where a server keeps the streams of those who have no account.
const globalStreams = "$G"

// adopt gives the tenant what was stored while nobody had to say who they are. What
// is there is never written over.
//
// The servers of a cluster know of each other's streams by accounts, so that they can
// not change hands there.
func (a *auth) adopt(storeDir string, cluster bool) error {
	if a.tenant.Name != realm.DefaultTenant {
		return nil
	}
	from, to := filepath.Join(storeDir, server.JetStreamStoreDir, globalStreams), filepath.Join(storeDir, server.JetStreamStoreDir, a.tenant.Key)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if cluster {
		return fmt.Errorf("the cluster started without credentials, and the streams that it stored then (%s) cannot be moved to a tenant; "+
			"move the folder auth away to continue without credentials, or start a new cluster with other data directories", from)
	}
	// The list of accounts has the one that is about to go. The server writes it again.
	err := os.Remove(filepath.Join(filepath.Dir(storeDir), accountsFile))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(from, to)
	}
	if err != nil {
		return fmt.Errorf("cannot move the streams from before the realm to the tenant %s: %w", a.tenant.Name, err)
	}
	a.log.Info("the streams from before the realm now belong to the tenant", "tenant", a.tenant.Name)
	return nil
}

// begin has the server know the tenants, and follows the realm until end.
func (a *auth) begin(s *Server) error {
	for _, t := range a.known.Tenants {
		if _, err := s.nats.LookupAccount(t.Key); err != nil {
			return fmt.Errorf("the tenant %s: %w", t.Name, err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	if s.Clustered() {
		var err error
		if a.gossip, err = startGossip(ctx, s); err != nil {
			return err
		}
	}
	a.done.Go(func() { a.follow(ctx, s.nats) })
	return nil
}

func (a *auth) end() {
	a.stop()
	a.done.Wait()
	a.gossip.end()
}

// follow takes over what changes.
func (a *auth) follow(ctx context.Context, s *server.Server) {
	tick := time.NewTicker(lookAtRealm)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.gossip.heard():
		}
		err := a.look(s)
		a.restore(s, time.Now())
		if err != nil && err.Error() != a.said {
			a.log.Error("the realm changed and cannot be loaded; the credentials that were read last stay in effect", "error", err)
		}
		a.said = ""
		if err != nil {
			a.said = err.Error()
		}
		a.unreadable.Store(err != nil)
		a.mu.Lock()
		known := a.known
		a.mu.Unlock()
		a.gossip.tell(known)
	}
}

// RealmUnreadable reports whether what is stored of who may use the fabric cannot be
// read, so that what was known before counts: nobody who is revoked is cut off. It never
// is where nobody has to say who they are.
func (s *Server) RealmUnreadable() bool { return s.auth != nil && s.auth.unreadable.Load() }

// look takes over what changed since it looked last.
func (a *auth) look(s *server.Server) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, err := realm.Stat(a.dir)
	if err != nil {
		return err
	}
	if a.seen != nil && os.SameFile(a.seen, now) && a.seen.ModTime().Equal(now.ModTime()) && a.seen.Size() == now.Size() {
		return nil
	}
	next, err := realm.Read(a.dir)
	if err != nil {
		return err
	}
	if next.Operator.Key != a.known.Operator.Key || next.System.Key != a.known.System.Key {
		return errors.New("it belongs to another fabric; restart the broker")
	}
	for i := range next.Tenants {
		if err := a.take(s, &next.Tenants[i]); err != nil {
			return fmt.Errorf("the tenant %s: %w", next.Tenants[i].Name, err)
		}
	}
	a.seen = now
	a.know(next)
	return nil
}

// know takes over a realm. The lock is held, or nothing else uses a yet.
func (a *auth) know(r *realm.Realm) {
	names := make(map[string]string, len(r.Users))
	for i := range r.Users {
		names[r.Users[i].Key] = r.Users[i].Name
	}
	a.known = r
	a.names.Store(&names)
}

// CredentialName returns the name of the credentials with a public key, which are an agent's id
// for an agent; empty: the server knows no such credentials.
func (s *Server) CredentialName(key string) string {
	if s.auth == nil {
		return ""
	}
	return (*s.auth.names.Load())[key]
}

// take has the server know what is said of a tenant now. It closes the connections
// of those whose credentials are revoked. The lock is held.
func (a *auth) take(s *server.Server, t *realm.Tenant) error {
	before, unknown := a.known.Tenant(t.Name)
	if unknown == nil && before.JWT == t.JWT {
		return nil
	}
	claims, err := jwt.DecodeAccountClaims(t.JWT)
	if err != nil {
		return err
	}
	if err := a.resolver.Store(t.Key, t.JWT); err != nil || !fetched(s, t.Key) {
		// Its first client has the server fetch it. To do that here as well could be at the
		// same moment, and two that make one account's store get in each other's way.
		return err
	}
	account, err := s.LookupAccount(t.Key)
	if err != nil {
		return err
	}
	a.refuse(t.Key, claims, time.Now())
	s.UpdateAccountClaims(account, claims)
	a.log.Info("the realm changed, and the broker loaded it", "tenant", t.Name)
	return nil
}

// fetched reports whether the server knows what is said of a tenant, of which another
// server of the cluster may have told no more than the name.
func fetched(s *server.Server, key string) bool {
	info, err := s.Accountz(&server.AccountzOptions{Account: key})
	return err == nil && info.Account != nil && info.Account.Complete && !info.Account.Expired
}

// as has a connection of this process say who it is, unless it does.
func as(o bus.Options, c realm.Credential) bus.Options {
	if o.Creds == "" && o.User == "" && o.JWT == "" {
		o.JWT, o.Seed = c.JWT, c.Seed
	}
	return o
}

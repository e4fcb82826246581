package server

import (
	"cmp"
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

// lookAtRealm is how often the server checks whether the realm changed. A revocation takes effect at
// most that much later.
const lookAtRealm = 500 * time.Millisecond

// authenticates reports whether clients need credentials.
func (o *Options) authenticates() bool { return o.Auth != "" }

// auth holds the realm of a server.
type auth struct {
	dir      string
	tenant   *realm.Tenant
	resolver *server.MemAccResolver
	operator *jwt.OperatorClaims
	// user and system are the credentials of this process itself.
	user, system realm.Credential
	log          *slog.Logger

	mu     sync.Mutex  // guards the following fields
	seen   fs.FileInfo // the file that was read last
	known  *realm.Realm
	cutOff []cutOff // the users that are refused for a while
	said   string   // the last error that was logged
	// unreadable is true while the stored realm cannot be read, for other goroutines.
	unreadable atomic.Bool
	// names are the names of the credentials in known, by public key.
	names atomic.Pointer[map[string]string]

	gossip *gossip // nil: there is no cluster

	stop context.CancelFunc
	done sync.WaitGroup
}

// openAuth reads the realm in the options' folder; nil: clients need no credentials.
func openAuth(o Options) (*auth, error) {
	if o.Auth == "" {
		if o.Tenant != "" {
			return nil, fmt.Errorf("there is no tenant %q because this data directory has no realm; create one with `broker creds init`, or remove --tenant", o.Tenant)
		}
		return nil, o.unclaimed(nil)
	}
	a := &auth{dir: o.Auth, resolver: &server.MemAccResolver{}, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), stop: func() {}}
	a.seen, _ = realm.Stat(a.dir) // before the read, so that no change is missed
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

// unclaimed rejects a store that belongs to another realm, or to a realm that is missing. Without
// credentials there are no tenants, and a store of a tenant means that the realm is missing.
func (o *Options) unclaimed(tenants []realm.Tenant) error {
	store := filepath.Join(o.Dir, storeFolder, server.JetStreamStoreDir)
	accounts, err := os.ReadDir(store)
	if err != nil {
		return nil //nolint:nilerr // there is no store, or the server reports that it is unreadable
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

// demand makes a server require credentials.
func (a *auth) demand(opts *server.Options) {
	opts.Accounts, opts.Users = nil, nil
	opts.TrustedOperators = []*jwt.OperatorClaims{a.operator}
	opts.SystemAccount = a.known.System.Key
	opts.AccountResolver = a.resolver
	for _, r := range opts.LeafNode.Remotes {
		r.LocalAccount = a.tenant.Key
	}
	if opts.JsAccDefaultDomain != nil {
		delete(opts.JsAccDefaultDomain, globalAccount) // the server rejects it together with tenants
		for _, t := range a.known.Tenants {
			opts.JsAccDefaultDomain[t.Key] = ""
		}
	}
}

// globalStreams is the folder of the streams of clients without an account.
const globalStreams = "$G"

// adopt moves streams from before the realm to the default tenant. It never overwrites streams of the
// tenant.
//
// In a cluster it fails: the servers know each other's streams by account, so they cannot be moved.
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
	// The list of accounts names the account that is about to go. The server writes it again.
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

// begin makes the server load the tenants, and follows the realm until end.
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

// follow loads changes of the realm.
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

// RealmUnreadable reports whether the stored realm cannot be read. The server then uses the one that it
// read last, so new revocations have no effect. It is false if clients need no credentials.
func (s *Server) RealmUnreadable() bool { return s.auth != nil && s.auth.unreadable.Load() }

// look loads the realm if it changed since the last look.
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

// know stores a realm. The caller holds the lock, or is the only user of a.
func (a *auth) know(r *realm.Realm) {
	names := make(map[string]string, len(r.Users))
	for i := range r.Users {
		names[r.Users[i].Key] = r.Users[i].Name
	}
	a.known = r
	a.names.Store(&names)
}

// CredentialName returns the name of the credentials with a public key, which is the agent's id for an
// agent; empty: unknown credentials.
func (s *Server) CredentialName(key string) string {
	if s.auth == nil {
		return ""
	}
	return (*s.auth.names.Load())[key]
}

// take makes the server use new claims of a tenant, and closes connections whose credentials were
// revoked. The caller holds the lock.
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
		// The server fetches it for its first client. Fetching it here at the same moment would make
		// two stores of one account.
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

// fetched reports whether the server has the claims of a tenant. Another server of the cluster may have
// sent only its name.
func fetched(s *server.Server, key string) bool {
	info, err := s.Accountz(&server.AccountzOptions{Account: key})
	return err == nil && info.Account != nil && info.Account.Complete && !info.Account.Expired
}

// as adds credentials to a connection of this process that has none.
func as(o bus.Options, c realm.Credential) bus.Options {
	if o.Creds == "" && o.User == "" && o.JWT == "" {
		o.JWT, o.Seed = c.JWT, c.Seed
	}
	return o
}

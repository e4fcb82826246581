package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/access/realm"
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

	seen  fs.FileInfo // the file that was read last
	known *realm.Realm
	said  string // what is wrong with the one that is there now
	// unreadable says that something is, to others than follow.
	unreadable atomic.Bool

	gossip *gossip // nil: the server is on its own

	stop context.CancelFunc
	done sync.WaitGroup
}

// openAuth reads the realm in the options' folder; nil: nobody has to say who he is.
func openAuth(o Options) (*auth, error) {
	if o.Auth == "" {
		if o.Tenant != "" {
			return nil, fmt.Errorf("there is no tenant %q where nobody has to say who they are; make a realm with `broker creds init`, or leave --tenant out", o.Tenant)
		}
		return nil, nil
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &auth{dir: o.Auth, resolver: &server.MemAccResolver{}, log: log, stop: func() {}}
	var err error
	a.seen, _ = realm.Stat(a.dir) // before it is read, so that no change is missed
	if a.known, err = realm.Read(a.dir); err != nil {
		return nil, err
	}
	if a.tenant, err = a.known.Tenant(o.Tenant); err != nil {
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
		return fmt.Errorf("the cluster began without asking anybody who they are, and what it stored then (%s) can not be given to a tenant; "+
			"move the folder auth away to go on as before, or begin a new cluster with other data directories", from)
	}
	err := os.Rename(from, to)
	if err != nil {
		return fmt.Errorf("what was stored before anybody had to say who they are can not be given to the tenant %s: %w", a.tenant.Name, err)
	}
	a.log.Info("what was stored before anybody had to say who they are belongs to the tenant now", "tenant", a.tenant.Name)
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
		if err != nil && err.Error() != a.said {
			a.log.Error("who may use the fabric changed, and that can not be followed; what was known before counts", "error", err)
		}
		a.said = ""
		if err != nil {
			a.said = err.Error()
		}
		a.unreadable.Store(err != nil)
		a.gossip.tell(a.known)
	}
}

// RealmUnreadable reports whether what is stored of who may use the fabric can not be
// read, so that what was known before counts: nobody who is revoked is cut off. It never
// is where nobody has to say who they are.
func (s *Server) RealmUnreadable() bool { return s.auth != nil && s.auth.unreadable.Load() }

// look takes over what changed since it looked last.
func (a *auth) look(s *server.Server) error {
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
		return errors.New("it is another fabric's; start the broker again")
	}
	for i := range next.Tenants {
		if err := a.take(s, &next.Tenants[i]); err != nil {
			return fmt.Errorf("the tenant %s: %w", next.Tenants[i].Name, err)
		}
	}
	a.seen, a.known = now, next
	return nil
}

// take has the server know what is said of a tenant now. It closes the connections
// of those whose credentials are revoked.
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
	s.UpdateAccountClaims(account, claims)
	a.log.Info("who may use the fabric changed", "tenant", t.Name)
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

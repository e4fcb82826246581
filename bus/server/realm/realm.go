package realm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/schema"
)

// DefaultTenant is the tenant that each realm has.
const DefaultTenant = "default"

// The files of the folder.
const (
	fileName  = "realm.json"
	seedsName = "seeds"
	lockName  = "lock"
)

// maxFile bounds the realm's file.
const maxFile = 64 << 20

// Errors that callers distinguish.
var (
	// ErrNone means that the folder has no realm.
	ErrNone = errors.New("this data directory has no realm, so clients need no credentials")
	// ErrNotFound means that the realm has no such name.
	ErrNotFound = errors.New("not in the realm")
)

// An Identity is a key with signed claims about it.
type Identity struct {
	// Key is the public key.
	Key string `json:"key"`
	// JWT are the signed claims.
	JWT string `json:"jwt"`
}

// A Tenant is a NATS account.
type Tenant struct {
	Identity
	Name   string `json:"name"`
	Limits Limits `json:"limits"`
}

// Limits limit a tenant's use of a server. Zero means the server's own limit.
type Limits struct {
	// Connections and Subscriptions are the limits at one time.
	Connections   int64 `json:"connections,omitzero"`
	Subscriptions int64 `json:"subscriptions,omitzero"`
	// Disk and Memory limit its streams, in bytes.
	Disk   int64 `json:"disk,omitzero"`
	Memory int64 `json:"memory,omitzero"`
}

// A User has credentials.
type User struct {
	Name   string      `json:"name"`
	Role   access.Role `json:"role"`
	Tenant string      `json:"tenant"`
	// Key is the public key.
	Key    string   `json:"key"`
	Agents []string `json:"agents,omitzero"`
	Pools  []string `json:"pools,omitzero"`
	// Issued, Expires and Revoked are the times of these changes; zero: it never expires, and it
	// is not revoked.
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// Grant returns the purpose of the user's credentials.
func (u *User) Grant() access.Grant {
	return access.Grant{Role: u.Role, Agents: u.Agents, Pools: u.Pools}
}

// Ended reports whether the credentials are revoked or expired.
func (u *User) Ended(now time.Time) bool {
	return !u.Revoked.IsZero() || !u.Expires.IsZero() && !now.Before(u.Expires)
}

// A Realm is the content of a folder when it was read. It does not change: a caller that changes the folder
// reads it again.
type Realm struct {
	Operator Identity `json:"operator"`
	// System is the account in which servers publish events about clients.
	System  Identity `json:"system"`
	Tenants []Tenant `json:"tenants"`
	Users   []User   `json:"users"`

	dir string
}

// Exists reports whether dir has a realm, or parts of one. An unreadable one counts. The lock and a folder
// without keys, which an Init that failed leaves, do not count.
func Exists(dir string) bool {
	return holds(dir, func(name string) bool {
		return name != lockName && (name != seedsName || hasSeeds(dir))
	})
}

// hasSeeds reports whether the realm's folder has keys, or cannot be read.
func hasSeeds(dir string) bool {
	return holds(filepath.Join(dir, seedsName), func(string) bool { return true })
}

// holds reports whether a folder has a file for which counts is true, or cannot be read.
func holds(dir string, counts func(name string) bool) bool {
	left, err := os.ReadDir(dir)
	return slices.ContainsFunc(left, func(e fs.DirEntry) bool { return counts(e.Name()) }) || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// errGone is the error of a realm whose file is missing.
func errGone(dir string) error {
	return fmt.Errorf("%s is missing, and the folder has other files of a realm; restore %s from a backup, or move that folder away to start a new realm, which refuses all earlier credentials",
		filepath.Join(dir, fileName), dir)
}

// Read reads the realm in dir; [ErrNone]: there is no realm.
func Read(dir string) (*Realm, error) {
	path := filepath.Join(dir, fileName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if Exists(dir) {
			return nil, errGone(dir)
		}
		return nil, fmt.Errorf("%w: %s does not exist; create it with `broker creds init`", ErrNone, path)
	}
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("it has %d bytes", info.Size())
	}
	if err == nil {
		if err := chown.Guarded(path); err != nil {
			return nil, fmt.Errorf("anyone who can write the realm can admit anyone: %w", err)
		}
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	r := &Realm{dir: dir}
	if err == nil {
		err = schema.Unmarshal(data, r)
	}
	if err == nil {
		err = r.sound()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w; restore the folder %s from a backup, or start with another data directory", path, err, dir)
	}
	return r, nil
}

// sound checks the claims and their signers.
func (r *Realm) sound() error {
	op, err := jwt.DecodeOperatorClaims(r.Operator.JWT)
	switch {
	case err != nil:
		return fmt.Errorf("the operator's claims: %w", err)
	case op.Subject != r.Operator.Key || op.Issuer != op.Subject || op.SystemAccount != r.System.Key:
		return errors.New("the operator's claims have another key")
	}
	if err := r.accountSound(&r.System); err != nil {
		return fmt.Errorf("the system account: %w", err)
	}
	for i := range r.Tenants {
		if err := r.accountSound(&r.Tenants[i].Identity); err != nil {
			return fmt.Errorf("the tenant %s: %w", r.Tenants[i].Name, err)
		}
	}
	if _, err := r.Tenant(DefaultTenant); err != nil {
		return err
	}
	return nil
}

func (r *Realm) accountSound(id *Identity) error {
	c, err := jwt.DecodeAccountClaims(id.JWT)
	if err == nil && (c.Subject != id.Key || c.Issuer != r.Operator.Key) {
		err = errors.New("its claims have another key")
	}
	return err
}

// Tenant returns a tenant; an empty name is the default tenant.
func (r *Realm) Tenant(name string) (*Tenant, error) {
	name = cmp.Or(name, DefaultTenant)
	i := slices.IndexFunc(r.Tenants, func(t Tenant) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: the tenant %.64q does not exist; create it with `broker creds tenant add %s`", ErrNotFound, name, name)
	}
	return &r.Tenants[i], nil
}

// user returns the newest credentials of a name, preferably ones that are not revoked.
func (r *Realm) user(tenant, name string) (last *User) {
	for i := range r.Users {
		u := &r.Users[i]
		switch {
		case u.Tenant != tenant || u.Name != name:
		case u.Revoked.IsZero():
			return u
		case last == nil:
			last = u
		}
	}
	return last
}

// signer reads the private key of an identity.
func (r *Realm) signer(id Identity) (nkeys.KeyPair, error) {
	path := seedPath(r.dir, id.Key)
	seed, err := os.ReadFile(path)
	var pair nkeys.KeyPair
	if err == nil {
		err = chown.Private(path)
	}
	if err == nil {
		pair, err = nkeys.FromSeed(seed)
		clear(seed)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the private key %s is missing here; run the command on the server that created the tenant, or copy the key from there: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the private key %s: %w", path, err)
	}
	if key, err := pair.PublicKey(); err != nil || key != id.Key {
		return nil, fmt.Errorf("the private key %s does not match its name", path)
	}
	return pair, nil
}

func seedPath(dir, key string) string { return filepath.Join(dir, seedsName, key+".seed") }

// A Credential is a user of this process alone.
type Credential struct{ JWT, Seed string }

// Internal makes credentials for the server's own process. They permit everything in the tenant, or with
// system in the system account, and are not stored.
func (r *Realm) Internal(tenant, name string, system bool) (Credential, error) {
	account := r.System
	if !system {
		t, err := r.Tenant(tenant)
		if err != nil {
			return Credential{}, err
		}
		account = t.Identity
	}
	made, err := r.sign(account, name, access.Grant{Role: access.Broker}, time.Time{})
	if err != nil {
		return Credential{}, err
	}
	return Credential{JWT: made.token, Seed: string(made.seed)}, nil
}

// Stat returns the state of the realm's file, which tells when the realm changes. A file that cannot be
// opened is an error, also if it is unchanged, because the next start would fail.
func Stat(dir string) (fs.FileInfo, error) {
	f, err := os.Open(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

package realm

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/schema"
)

// A signed holds a new user's key and claims.
type signed struct {
	key, token string
	seed       []byte
}

// hand passes the credentials to keep, and then erases the private key.
func (s *signed) hand(keep func(creds []byte) error) error {
	creds, err := jwt.FormatUserConfig(s.token, s.seed)
	if err == nil {
		err = keep(creds)
	}
	clear(creds)
	clear(s.seed)
	return err
}

// sign makes a user of an account.
func (r *Realm) sign(account Identity, name string, g access.Grant, expires time.Time) (*signed, error) {
	by, err := r.signer(account)
	if err != nil {
		return nil, err
	}
	defer by.Wipe()
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	defer pair.Wipe()
	key, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	claims, err := userClaims(key, name, g, expires)
	if err != nil {
		return nil, err
	}
	token, err := claims.Encode(by)
	if err != nil {
		return nil, fmt.Errorf("signing the credentials: %w", err)
	}
	return &signed{key: key, token: token, seed: bytes.Clone(seed)}, nil // Wipe erases the original
}

// userClaims returns the claims of a user.
func userClaims(key, name string, g access.Grant, expires time.Time) (*jwt.UserClaims, error) {
	p, err := g.Permissions(access.Inbox(key))
	if err != nil {
		return nil, err
	}
	c := jwt.NewUserClaims(key)
	c.Name = name
	c.Tags.Add(tags(g)...)
	if !expires.IsZero() {
		c.Expires = expires.Unix()
	}
	c.Pub.Allow, c.Sub.Allow = p.Publish, p.Subscribe
	if p.Responses > 0 {
		c.Resp = &jwt.ResponsePermission{MaxMsgs: p.Responses, Expires: p.ResponseTime}
	}
	c.Limits.Payload, c.Limits.Data = schema.MaxPayload, jwt.NoLimit
	c.Limits.Subs = cmp.Or(p.Subscriptions, jwt.NoLimit)
	c.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeInProcess)
	if g.Role == access.Broker {
		c.Limits.Payload = jwt.NoLimit
		c.AllowedConnectionTypes.Add(jwt.ConnectionTypeLeafnode)
	}
	return c, nil
}

// signTenant signs a tenant's limits and revocations.
func (r *Realm) signTenant(t *Tenant) error {
	c := jwt.NewAccountClaims(t.Key)
	c.Name = t.Name
	c.Limits.Conn, c.Limits.Subs = cmp.Or(t.Limits.Connections, jwt.NoLimit), cmp.Or(t.Limits.Subscriptions, jwt.NoLimit)
	c.Limits.Payload, c.Limits.DisallowBearer = jwt.NoLimit, true
	c.Limits.JetStreamLimits = jwt.JetStreamLimits{
		DiskStorage: cmp.Or(t.Limits.Disk, jwt.NoLimit), MemoryStorage: cmp.Or(t.Limits.Memory, jwt.NoLimit),
		Streams: jwt.NoLimit, Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit,
	}
	for i := range r.Users {
		if u := &r.Users[i]; u.Tenant == t.Name && !u.Revoked.IsZero() {
			c.RevokeAt(u.Key, u.revokedFrom())
		}
	}
	return r.signAccount(&t.Identity, c)
}

// revokedFrom returns a time after the user's claims were issued, also if the clock of the machine that
// revoked them is behind that of the one that issued them.
func (u *User) revokedFrom() time.Time {
	if made := u.Issued.Add(time.Minute); u.Revoked.Before(made) {
		return made
	}
	return u.Revoked
}

func (r *Realm) signAccount(id *Identity, c *jwt.AccountClaims) error {
	by, err := r.signer(r.Operator)
	if err != nil {
		return err
	}
	defer by.Wipe()
	if id.JWT, err = c.Encode(by); err != nil {
		return fmt.Errorf("signing the tenant %s: %w", c.Name, err)
	}
	return nil
}

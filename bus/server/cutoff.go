package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// A cutOff is a user whose credentials this server refuses until a time, as if they were revoked. Closing
// the connections alone would look like an outage, in which shims allow calls that no fail-closed hook
// guards.
type cutOff struct {
	account, user string
	until         time.Time
}

// cut refuses a user of an account, and closes the user's connections.
func (a *auth) cut(s *server.Server, c cutOff) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cutOff = append(slices.DeleteFunc(a.cutOff, func(o cutOff) bool { return o.user == c.user }), c)
	return a.update(s, c.account)
}

// restore accepts credentials again whose refusal is over.
func (a *auth) restore(s *server.Server, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var over []string
	a.cutOff = slices.DeleteFunc(a.cutOff, func(c cutOff) bool {
		ended := !now.Before(c.until)
		if ended {
			over = append(over, c.account)
		}
		return ended
	})
	slices.Sort(over)
	for _, account := range slices.Compact(over) {
		if err := a.update(s, account); err != nil {
			a.log.Error("credentials that were refused for a while stay refused; restart the broker", "account", account, "error", err)
		}
	}
}

// update makes the server use the refused users of an account. The caller holds the lock.
func (a *auth) update(s *server.Server, key string) error {
	for i := range a.known.Tenants {
		t := &a.known.Tenants[i]
		if t.Key != key {
			continue
		}
		claims, err := jwt.DecodeAccountClaims(t.JWT)
		if err != nil {
			return fmt.Errorf("reading the claims of the tenant %s: %w", t.Name, err)
		}
		account, err := s.LookupAccount(key)
		if err != nil {
			return fmt.Errorf("finding the tenant %s: %w", t.Name, err)
		}
		a.refuse(key, claims, time.Now())
		s.UpdateAccountClaims(account, claims)
		return nil
	}
	return errors.New("the realm does not have this tenant")
}

// refuse adds the refused users to an account's claims. The caller holds the lock.
func (a *auth) refuse(account string, claims *jwt.AccountClaims, now time.Time) {
	for _, c := range a.cutOff {
		if c.account == account && now.Before(c.until) {
			claims.RevokeAt(c.user, now)
		}
	}
}

// accountOf returns the account of a user's claims.
func accountOf(claims *jwt.UserClaims) string { return cmp.Or(claims.IssuerAccount, claims.Issuer) }

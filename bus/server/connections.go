package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/schema"
)

// accountEvents is where servers tell of clients that come to an account, and leave it.
const accountEvents = "$SYS.ACCOUNT.*.*"

// tooManyLogged is how often it is logged of some credentials that too many connect by them.
const tooManyLogged = time.Minute

// BoundConnections sees to it, until ctx ends, that no more connect to this server by the
// same credentials than their role may have at a time: NATS itself bounds only those of
// a whole account. It returns when it watches. nc must be a connection to the system
// account: see [Server.ConnectSystem]. Where nobody has to say who they are it does nothing.
//
// Who comes too late is let in for the moment that it takes to hear of it, and sent away. So
// are credentials of agents and hosts by which more is sent than a flood may be.
func (s *Server) BoundConnections(ctx context.Context, nc *nats.Conn, log *slog.Logger, flood Flood) error {
	if s.auth == nil {
		return nil
	}
	b := &connections{server: s.nats, auth: s.auth, log: log, flood: flood, users: make(map[string]*connected), of: make(map[uint64]string)}
	all, err := s.nats.Connz(&server.ConnzOptions{Username: true, Limit: mostConnections})
	if err != nil {
		return fmt.Errorf("listing the connections: %w", err)
	}
	for _, c := range all.Conns {
		b.come(&client{ID: c.Cid, JWT: c.JWT, Tags: c.Tags, Name: c.Name})
	}
	sub, err := nc.Subscribe(accountEvents, b.hear)
	if err == nil {
		fctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err = nc.FlushWithContext(fctx)
	}
	if err != nil {
		return fmt.Errorf("watching new connections: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	if flood.Messages > 0 {
		go b.watchFloods(ctx)
	}
	return nil
}

// A client is the part of the server's event that tells who came or left.
type client struct {
	ID   uint64   `json:"id"`
	JWT  string   `json:"jwt"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// connections are those of one server, by who may have only so many.
type connections struct {
	server *server.Server
	auth   *auth
	log    *slog.Logger
	flood  Flood
	// cause is when it is looked who sends how much; only watchFloods uses it.
	cause floodCause
	// ahead is how much more each user sent than it may lately; only watchFloods uses it.
	ahead map[string]sent

	mu    sync.Mutex            // guards what follows
	users map[string]*connected // by their keys
	of    map[uint64]string     // whose each connection is
}

// connected are a user's connections.
type connected struct {
	name, account       string // in the credentials
	role                access.Role
	ids                 map[uint64]struct{}
	logged, loggedFlood time.Time
	cutOff              time.Time // until when it may not connect
}

// hear takes over what a server says.
func (b *connections) hear(m *nats.Msg) {
	var e struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
		Client client `json:"client"`
	}
	_, kind, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$SYS.ACCOUNT."), ".")
	if err := schema.Unmarshal(m.Data, &e); err != nil || e.Server.ID != b.server.ID() {
		return // another server's
	}
	switch kind {
	case "CONNECT":
		b.come(&e.Client)
	case "DISCONNECT":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.forget(e.Client.ID)
	}
}

// come counts a connection, and sends it away if there are too many.
func (b *connections) come(c *client) {
	role, most := bound(c.Tags)
	if most == 0 || b.server.GetClient(c.ID) == nil {
		return
	}
	claims, err := userOf(c.JWT)
	if err != nil {
		b.log.Warn("a client is connected whose credentials cannot be read", "client", c.Name, "error", err)
		return
	}
	key := claims.Subject
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[key]
	if u == nil {
		u = &connected{name: claims.Name, account: accountOf(claims), role: role, ids: make(map[uint64]struct{})}
		b.users[key] = u
	}
	u.ids[c.ID], b.of[c.ID] = struct{}{}, key
	if len(u.ids) <= most {
		return
	}
	for id := range u.ids { // it may not have been told of all that left
		if b.server.GetClient(id) == nil {
			b.forget(id)
		}
	}
	if len(u.ids) <= most {
		return
	}
	_ = b.server.DisconnectClientByID(c.ID) // it may have gone meanwhile
	if now := time.Now(); now.Sub(u.logged) >= tooManyLogged {
		u.logged = now
		b.log.Warn("too many connections use the same credentials, and the server closes the newest ones; find the program that opens them, or create credentials for each",
			"user", key, "client", c.Name, "role", role, "most", most)
	}
}

// forget forgets a connection, and its user with the last of them. The lock is held.
func (b *connections) forget(id uint64) {
	key, known := b.of[id]
	if !known {
		return
	}
	delete(b.of, id)
	if u := b.users[key]; u != nil {
		if delete(u.ids, id); len(u.ids) == 0 && !time.Now().Before(u.cutOff) {
			delete(b.users, key)
		}
	}
}

// bound is how many connections credentials with these tags may have; 0: any number.
func bound(tags []string) (role access.Role, most int) {
	for _, tag := range tags {
		if name, ok := strings.CutPrefix(tag, realm.RoleTag); ok {
			role = access.Role(name)
			return role, role.Connections()
		}
	}
	return "", 0
}

// userOf are the claims of a user. What else a client says of itself when it connects, also its
// user's name, is of its own choice.
func userOf(token string) (*jwt.UserClaims, error) {
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return nil, err
	}
	if claims.Subject == "" {
		return nil, errors.New("the credentials name no user")
	}
	return claims, nil
}

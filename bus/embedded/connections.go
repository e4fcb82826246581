package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/access"
	"github.com/hookfabric/hookfabric/bus/access/realm"
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
// Who comes too late is let in for the moment that it takes to hear of it, and sent away.
func (s *Server) BoundConnections(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	if s.auth == nil {
		return nil
	}
	b := &connections{server: s.nats, log: log, users: make(map[string]*connected), of: make(map[uint64]string)}
	all, err := s.nats.Connz(&server.ConnzOptions{Username: true, Limit: mostConnections})
	if err != nil {
		return fmt.Errorf("listing who is connected: %w", err)
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
		return fmt.Errorf("watching who connects: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return nil
}

// A client is the part of the server's event that tells who came or left.
type client struct {
	ID   uint64   `json:"id"`
	JWT  string   `json:"jwt"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// connections are those of one server, by who may have only so many. One goroutine uses it.
type connections struct {
	server *server.Server
	log    *slog.Logger
	users  map[string]*connected // by their keys
	of     map[uint64]string     // whose each connection is
}

// connected are a user's connections.
type connected struct {
	ids    map[uint64]struct{}
	logged time.Time
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
		b.leave(e.Client.ID)
	}
}

// come counts a connection, and sends it away if there are too many.
func (b *connections) come(c *client) {
	role, most := bound(c.Tags)
	if most == 0 || b.server.GetClient(c.ID) == nil {
		return
	}
	key, err := userOf(c.JWT)
	if err != nil {
		b.log.Warn("a client whose credentials can not be read is connected", "client", c.Name, "error", err)
		return
	}
	u := b.users[key]
	if u == nil {
		u = &connected{ids: make(map[uint64]struct{})}
		b.users[key] = u
	}
	u.ids[c.ID], b.of[c.ID] = struct{}{}, key
	if len(u.ids) <= most {
		return
	}
	for id := range u.ids { // it may not have been told of all that left
		if b.server.GetClient(id) == nil {
			b.leave(id)
		}
	}
	if len(u.ids) <= most {
		return
	}
	_ = b.server.DisconnectClientByID(c.ID) // it may have gone meanwhile
	if now := time.Now(); now.Sub(u.logged) >= tooManyLogged {
		u.logged = now
		b.log.Warn("too many connect by the same credentials: those that come last are sent away; look what opens so many, or make credentials for each",
			"user", key, "client", c.Name, "role", role, "most", most)
	}
}

// leave forgets a connection.
func (b *connections) leave(id uint64) {
	key, known := b.of[id]
	if !known {
		return
	}
	delete(b.of, id)
	if u := b.users[key]; u != nil {
		if delete(u.ids, id); len(u.ids) == 0 {
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

// userOf is the key of the user whose claims they are. What else a client says of itself
// when it connects, also its user's name, is of its own choice.
func userOf(token string) (string, error) {
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return "", err
	}
	if claims.Subject == "" {
		return "", errors.New("they name no user")
	}
	return claims.Subject, nil
}

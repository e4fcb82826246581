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

// accountEvents is the subject of events about clients that connect and disconnect.
const accountEvents = "$SYS.ACCOUNT.*.*"

// tooManyLogged is the interval of log lines about the same credentials.
const tooManyLogged = time.Minute

// BoundConnections limits, until ctx ends, the connections to this server with the same credentials to
// the limit of their role, because NATS limits only accounts. It returns when it watches. nc must be a
// connection to the system account: see [Server.ConnectSystem]. Without credentials it does nothing.
//
// A connection above the limit is closed as soon as the server reports it. Credentials of agents and
// hosts that send more than flood permits are refused for a while.
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
	if err := watch(ctx, nc, accountEvents, b.hear); err != nil {
		return fmt.Errorf("watching new connections: %w", err)
	}
	if flood.Messages > 0 {
		go b.watchFloods(ctx)
	}
	return nil
}

// A client is the part of a server's event that identifies the client.
type client struct {
	ID   uint64   `json:"id"`
	JWT  string   `json:"jwt"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// connections are the connections of one server by credentials.
type connections struct {
	server *server.Server
	auth   *auth
	log    *slog.Logger
	flood  Flood
	// cause decides when the connections are checked; only watchFloods uses it.
	cause floodCause
	// ahead is how much more than permitted each user has sent lately; only watchFloods uses it.
	ahead map[string]sent

	mu    sync.Mutex            // guards the following fields
	users map[string]*connected // by public key
	of    map[uint64]string     // the user of each connection
}

// connected are the connections of one user.
type connected struct {
	name, account       string // in the credentials
	role                access.Role
	ids                 map[uint64]struct{}
	logged, loggedFlood time.Time
	cutOff              time.Time // when the refusal of the user ends
}

// hear handles an event of a server.
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

// come counts a connection, and closes it if there are too many.
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
	for id := range u.ids { // some disconnects may not have been reported
		if b.server.GetClient(id) == nil {
			b.forget(id)
		}
	}
	if len(u.ids) <= most {
		return
	}
	_ = b.server.DisconnectClientByID(c.ID) // fails if it has closed by itself
	if now := time.Now(); now.Sub(u.logged) >= tooManyLogged {
		u.logged = now
		b.log.Warn("too many connections use the same credentials, and the server closes the newest ones; find the program that opens them, or create credentials for each",
			"user", key, "client", c.Name, "role", role, "most", most)
	}
}

// forget removes a connection, and its user with the last one. The caller holds the lock.
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

// bound returns the limit of connections of credentials with these tags; 0: no limit.
func bound(tags []string) (role access.Role, most int) {
	for _, tag := range tags {
		if name, ok := strings.CutPrefix(tag, realm.RoleTag); ok {
			role = access.Role(name)
			return role, role.Connections()
		}
	}
	return "", 0
}

// userOf returns the claims of a user. All other fields of a client's CONNECT, including its user name,
// are not verified.
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

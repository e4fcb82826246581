package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// A Place is where a daemon is found, and where it keeps things: a state folder.
type Place struct {
	// State is the folder of --state.
	State string
	// At is the socket of --socket; empty: its usual place.
	At string
}

// Socket is the path of the unix socket: in the user's runtime folder, which
// ends with the login, else in the state folder.
func (p Place) Socket() string {
	if p.At != "" {
		return p.At
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hookfabric", "agentshim.sock")
	}
	if p.State == "" {
		return ""
	}
	return filepath.Join(p.State, "agentshim.sock")
}

// Card is the file that says where the daemon is: see [Card].
func (p Place) Card() string { return filepath.Join(p.State, "daemon.json") }

// Token is the file with the secret of the HTTP endpoint.
func (p Place) Token() string { return filepath.Join(p.State, "daemon.token") }

// RelayToken is the file with the secret of MCP servers behind 'agentshim mcp --listen'.
func (p Place) RelayToken() string { return filepath.Join(p.State, "mcp.token") }

// Log is the file that a daemon writes to that a hook started.
func (p Place) Log() string { return filepath.Join(p.State, "daemon.log") }

// MakeToken is the secret of the HTTP endpoint, made once. Without a state folder there is none.
func (p Place) MakeToken() (string, error) {
	if p.State == "" {
		return "", nil
	}
	return p.makeSecret(p.Token())
}

// MakeRelayToken is the secret of MCP servers behind a listener, made once, so that clients
// may keep the URL. Without a state folder it is another one each time.
func (p Place) MakeRelayToken() (string, error) {
	if p.State == "" {
		return rand.Text(), nil
	}
	return p.makeSecret(p.RelayToken())
}

// makeSecret reads the secret in a file, which is made if it is not there.
func (p Place) makeSecret(path string) (string, error) {
	if err := makeOwn(p.State); err != nil {
		return "", err
	}
	if token, err := readSecret(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return token, err
	}
	if err := shimstate.Put(path, []byte(rand.Text()+"\n"), os.Link); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return readSecret(path) // another process may have been first
}

// readSecret reads a secret that other users of the machine cannot reach.
func readSecret(path string) (string, error) {
	switch err := chown.Private(path); {
	case errors.Is(err, os.ErrNotExist):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w, or delete the file; the daemon then creates a new one", err)
	}
	data, err := os.ReadFile(path)
	token := strings.TrimSpace(string(data))
	if err == nil && len(token) < len(rand.Text()) {
		err = fmt.Errorf("%s is too short for a token; delete the file, and the daemon creates a new one", path)
	}
	return token, err
}

// A Card says where a daemon is.
type Card struct {
	// URL is the HTTP endpoint, and TokenFile the file with its secret; empty: there is none.
	URL       string `json:"url,omitzero"`
	TokenFile string `json:"token_file,omitzero"`
	Socket    string `json:"socket,omitzero"`
	PID       int    `json:"pid"`
	// NATS, Creds and TLS are how the daemon reaches its fabric, for hooks that it fails. A URL with a
	// password is left out: the card is no place for one.
	NATS  string      `json:"nats,omitzero"`
	Creds string      `json:"creds,omitzero"`
	TLS   certs.Files `json:"tls,omitzero"`
}

// WriteCard tells others where the daemon is.
func (p Place) WriteCard(c Card) error {
	if p.State == "" {
		return nil
	}
	data, err := schema.Marshal(&c)
	if err != nil {
		return err
	}
	return shimstate.Put(p.Card(), append(data, '\n'), os.Rename)
}

// ReadCard is what the daemon of a place told of itself; it may be gone.
func (p Place) ReadCard() (c Card, err error) {
	data, err := os.ReadFile(p.Card())
	if err != nil {
		return c, err
	}
	return c, schema.Unmarshal(data, &c)
}

// DropCard takes away what this process wrote.
func (p Place) DropCard() {
	if c, err := p.ReadCard(); err == nil && c.PID == os.Getpid() {
		_ = os.Remove(p.Card())
	}
}

// Redacted is a URL of the bus as logs may have it.
func Redacted(url string) string { return bus.RedactURL(url) }

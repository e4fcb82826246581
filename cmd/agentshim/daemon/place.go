package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

// A Place has the paths of a daemon: its socket and its state folder.
type Place struct {
	// State is the folder of --state.
	State string
	// At is the socket of --socket; empty: the default path.
	At string
}

// Socket returns the path of the unix socket, in the user's runtime folder or else the state folder.
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

// Card returns the path of the file that says where the daemon is: see [Card].
func (p Place) Card() string { return filepath.Join(p.State, "daemon.json") }

// Token returns the path of the file with the secret of the HTTP endpoint.
func (p Place) Token() string { return filepath.Join(p.State, "daemon.token") }

// MakeToken returns the secret of the HTTP endpoint and creates it if needed.
func (p Place) MakeToken() (string, error) { return p.makeSecret(p.Token()) }

// MakeRelayToken returns the lasting secret of 'agentshim mcp --listen', and creates it if needed.
func (p Place) MakeRelayToken() (string, error) {
	return p.makeSecret(filepath.Join(p.State, "mcp.token"))
}

// makeSecret reads or creates the secret in a file. Without a state folder it differs each time.
func (p Place) makeSecret(path string) (string, error) {
	if p.State == "" {
		return rand.Text(), nil
	}
	if err := makeOwn(p.State); err != nil {
		return "", err
	}
	if token, err := readSecret(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		return token, err
	}
	if err := shimstate.Put(path, []byte(rand.Text()+"\n"), os.Link); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return readSecret(path) // another process may have created it
}

// readSecret reads a secret. It rejects a file that other users of the machine can access.
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
	// URL is the HTTP endpoint, and TokenFile the file with its secret; empty: no endpoint.
	URL       string `json:"url,omitzero"`
	TokenFile string `json:"token_file,omitzero"`
	Socket    string `json:"socket,omitzero"`
	PID       int    `json:"pid"`
	// NATS, Creds and TLS are the way to the daemon's fabric, without a URL that has a password.
	NATS  string      `json:"nats,omitzero"`
	Creds string      `json:"creds,omitzero"`
	TLS   certs.Files `json:"tls,omitzero"`
}

// WriteCard writes the card.
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

// ReadCard reads the card of a daemon, which may have ended since.
func (p Place) ReadCard() (c Card, err error) {
	data, err := os.ReadFile(p.Card())
	if err != nil {
		return c, err
	}
	return c, schema.Unmarshal(data, &c)
}

// DropCard removes the card of this process.
func (p Place) DropCard() {
	if c, err := p.ReadCard(); err == nil && c.PID == os.Getpid() {
		_ = os.Remove(p.Card())
	}
}

// A Start is a daemon that a hook starts for the calls after its own.
type Start struct {
	Place

	// Program is the executable, and Args follow `serve`.
	Program string
	Args    []string
}

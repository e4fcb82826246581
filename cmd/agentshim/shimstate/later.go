package shimstate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// laterFolder is where what hooks inject waits for the moment after: one folder
	// per agent. A token has no dot at its beginning.
	laterFolder = ".later"
	// maxLater bounds what waits for one moment, in bytes.
	maxLater = 4 << 20
	// latest is how long it waits: a tool call is over by then, or never will be.
	latest = 24 * time.Hour
)

// Put keeps what hooks inject before a tool call for the moment after it. What is
// kept already for the same call stays, before it.
func (f Folder) Put(agent, pair string, all []schema.Injection) error {
	if f == "" {
		return errors.New("there is no folder for it; name one with --state")
	}
	path, err := f.laterFile(agent, pair)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	unlock, err := writable(dir)
	if err != nil {
		return err
	}
	defer unlock()
	before, _ := readLater(path) // one that cannot be read is replaced
	data, err := schema.Marshal(append(before, all...))
	if err != nil {
		return err
	}
	if len(data) > maxLater {
		return fmt.Errorf("the injections of one tool call are larger than %d bytes", maxLater)
	}
	sweepOlder(dir, latest)
	return Replace(path, data)
}

// Look is what is kept for the moment after a call.
func (f Folder) Look(agent, pair string) []schema.Injection {
	path, err := f.laterFile(agent, pair)
	if f == "" || err != nil {
		return nil
	}
	all, _ := readLater(path)
	return all
}

// Clear takes away what was kept for the moment after a call: it was told.
func (f Folder) Clear(agent, pair string) {
	if path, err := f.laterFile(agent, pair); f != "" && err == nil {
		_ = os.Remove(path)
	}
}

func (f Folder) laterFile(agent, pair string) (string, error) {
	token, err := bus.Token(agent)
	if err != nil {
		return "", fmt.Errorf("the agent's name: %w", err)
	}
	name := "any"
	if pair != "" {
		digest := sha256.Sum256([]byte(pair))
		name = hex.EncodeToString(digest[:16])
	}
	return filepath.Join(string(f), folder, laterFolder, token, name+suffix), nil
}

func readLater(path string) (all []schema.Injection, err error) {
	data, _, err := bounded(path, maxLater)
	if err == nil && data != nil {
		err = schema.Unmarshal(data, &all)
	}
	return all, err
}

// sweepOlder takes away what nobody changed for so long. The caller holds the lock.
func sweepOlder(dir string, after time.Duration) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), ".new-")) && time.Since(info.ModTime()) > after {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

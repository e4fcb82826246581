package shimstate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// flagsFolder is where agents' flags are: one folder per agent, in it one file per session.
	flagsFolder = ".flags"
	// maxFlags bounds the flags of a session, in bytes: every event carries them.
	maxFlags = 64 << 10
	// flagsFor is how long flags are kept that nobody changes any more.
	flagsFor = 30 * 24 * time.Hour
)

// Flags are those of an agent in a session, as a JSON object; nil: it has none, or
// they cannot be read.
func (f Folder) Flags(agent, session string) jsontext.Value {
	path, err := f.flagsFile(agent, session)
	if f == "" || err != nil {
		return nil
	}
	data, _, err := bounded(path, maxFlags)
	if v := jsontext.Value(data); err == nil && v.Kind() == '{' && v.IsValid() {
		return v
	}
	return nil
}

// SetFlags puts flags over those that an agent has in a session; null takes one
// away. Where they would be too many or too long, all stay as they were.
func (f Folder) SetFlags(agent, session string, set map[string]jsontext.Value) error {
	if f == "" {
		return errors.New("there is no folder for it; name one with --state")
	}
	path, err := f.flagsFile(agent, session)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	unlock, err := writable(dir)
	if err != nil {
		return err
	}
	defer unlock()
	all := map[string]jsontext.Value{}
	if before := f.Flags(agent, session); before != nil {
		if err := schema.Unmarshal(before, &all); err != nil {
			clear(all) // those that cannot be read are replaced
		}
	}
	maps.Copy(all, set)
	maps.DeleteFunc(all, func(_ string, v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' })
	data, err := schema.Marshal(all)
	switch {
	case err != nil:
		return err
	case len(all) > schema.MaxFlags:
		return fmt.Errorf("the agent would have %d flags; the limit is %d", len(all), schema.MaxFlags)
	case len(data) > maxFlags:
		return fmt.Errorf("the agent's flags would have %d bytes; the limit is %d", len(data), maxFlags)
	}
	sweepOlder(dir, flagsFor)
	return Replace(path, data)
}

func (f Folder) flagsFile(agent, session string) (string, error) {
	token, err := bus.Token(agent)
	if err != nil {
		return "", fmt.Errorf("the agent's name: %w", err)
	}
	digest := sha256.Sum256([]byte(session))
	return filepath.Join(string(f), folder, flagsFolder, token, hex.EncodeToString(digest[:16])+suffix), nil
}

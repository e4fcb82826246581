// Package shimstate stores what one shim process leaves for later processes: the last policy of each
// fabric, acknowledgements that the fabric may not have received, calls that no fabric judged, injections
// for a later event, flags, and the versions of runtimes.
//
// Each kind of state has files of its own. Except for the log of unjudged calls, a [file] holds one value:
// a writer replaces it as a whole, under a lock, so that concurrent shims do not lose each other's changes.
// An unreadable file of handovers counts as empty: the fabric may then deliver an item twice, but loses none.
package shimstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookfabric/hookfabric/bus"
)

const (
	// folder has one folder per fabric, and folders for other state, whose names begin with a dot, as no token
	// does.
	folder = "shim"
	suffix = ".json"
	// lockName is the lock file of a folder.
	lockName = ".lock"
)

// A Folder is the state folder of shims; an empty one stores nothing.
type Folder string

// ErrNowhere says that agentshim cannot store anything.
var ErrNowhere = errors.New("agentshim cannot store its state")

var errNoFolder = errors.New("there is no folder for it; name one with --state")

// probeSize is the size of the file that [Folder.Usable] writes. A full disk still takes an empty one.
const probeSize = 64 << 10

// Usable returns why the folder cannot store anything, or nil. It writes a file, and removes it.
func (f Folder) Usable() error {
	if f == "" {
		return fmt.Errorf("%w: found no folder that only this user can write; name one with --state, or set HOME", ErrNowhere)
	}
	dir := f.path()
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = Put(filepath.Join(dir, ".usable"), make([]byte, probeSize), func(string, string) error { return nil })
	}
	if err != nil {
		return fmt.Errorf("%w: %w; name another folder with --state", ErrNowhere, err)
	}
	return nil
}

// path returns a path in the folder of the shims.
func (f Folder) path(names ...string) string {
	return filepath.Join(append([]string{string(f), folder}, names...)...)
}

// fabric returns the folder of a fabric.
func (f Folder) fabric(id string) (string, error) {
	token, err := bus.Token(id)
	if err != nil {
		return "", fmt.Errorf("the fabric's id: %w", err)
	}
	return f.path(token), nil
}

// agentToken returns an agent's name as a file name.
func agentToken(agent string) (string, error) {
	token, err := bus.Token(agent)
	if err != nil {
		return "", fmt.Errorf("the agent's name: %w", err)
	}
	return token, nil
}

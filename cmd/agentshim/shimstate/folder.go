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
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// folder has one folder per fabric, and folders for other state, whose names begin with a dot.
	folder   = "shim"
	suffix   = ".json"
	lockName = ".lock" // the lock file of a folder
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

// A file holds one value. A writer locks it and replaces it as a whole, so that readers need no lock.
type file[T any] struct {
	name string // names the value in errors, such as "the agent's flags"
	// limit is the size limit of the file, in bytes.
	limit  int
	path   string
	decode func(data []byte) (T, error)
	encode func(v T) ([]byte, error)
	lock   string // the path of the lock file of the writers
	// expiry is the age at which [file.update] removes this file and those beside it; 0: never.
	expiry time.Duration
}

// jsonFile returns a file that stores its value as JSON.
func jsonFile[T any](name string, limit int, path, lock string, expiry time.Duration) file[T] {
	decode := func(data []byte) (v T, err error) {
		if err = schema.Unmarshal(data, &v); err != nil {
			v = *new(T)
		}
		return v, err
	}
	encode := func(v T) ([]byte, error) { return schema.Marshal(v) }
	return file[T]{name: name, limit: limit, path: path, decode: decode, encode: encode, lock: lock, expiry: expiry}
}

// load returns the value, and when it was written. The value of a missing file is the zero value.
func (f file[T]) load() (v T, written time.Time, err error) {
	data, written, err := readBounded(f.path, f.limit)
	if err != nil || data == nil {
		return v, written, err
	}
	if v, err = f.decode(data); err != nil {
		err = fmt.Errorf("%s: %w", f.path, err)
	}
	return v, written, err
}

// store replaces the value. The caller holds the lock.
func (f file[T]) store(v T) error {
	data, err := f.encode(v)
	if err != nil {
		return err
	}
	if len(data) > f.limit {
		return fmt.Errorf("%s would have %d bytes; the limit is %d", f.name, len(data), f.limit)
	}
	return Replace(f.path, data)
}

// update locks the file, and stores the value if change changed it. An unreadable file counts as empty.
func (f file[T]) update(change func(v *T) (changed bool, err error)) error {
	unlock, err := lockIn(f.lock)
	if err != nil {
		return err
	}
	defer unlock()
	v, _, err := f.load()
	if err != nil {
		v = *new(T)
	}
	changed, err := change(&v)
	if changed && err == nil {
		err = f.store(v)
	}
	if f.expiry > 0 {
		expire(filepath.Dir(f.path), f.expiry)
	}
	return err
}

// remove removes the file, if it exists.
func (f file[T]) remove() error {
	if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockIn creates the folder of a lock file, and takes the lock.
func lockIn(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return lock(path)
}

// lock locks a file for writers. It polls: a wait in the kernel would hold a thread after the hook's deadline.
func lock(path string) (unlock func(), err error) {
	begun := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, longestPause) {
		f, err := TryLock(path)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, ErrLocked):
			return nil, err
		case time.Since(begun) >= lockTime:
			return nil, fmt.Errorf("another process has held the lock %s for %s", path, lockTime)
		}
		time.Sleep(pause/2 + rand.N(pause)) // so that processes do not poll at the same time
	}
}

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process holds the lock")

const (
	// lockTime is how long a shim waits for a lock, and longestPause limits the average time between two attempts.
	lockTime     = 250 * time.Millisecond
	longestPause = 8 * time.Millisecond
	// tempPrefix begins the names of files that are being written, for at most tempExpiry.
	tempPrefix = ".new-"
	tempExpiry = time.Minute
)

// expire removes JSON files of a folder that were not written for age, and what dead writers left.
func expire(dir string, age time.Duration) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		limit := age
		if strings.HasPrefix(e.Name(), tempPrefix) {
			limit = tempExpiry
		} else if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > limit {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// errLarge says that a file is larger than the files that agentshim writes.
var errLarge = errors.New("agentshim never writes that much; delete the file")

// readBounded reads a file up to limit bytes, and returns when it was written. The data of a missing file is
// nil. It reads regular files only, because reading a pipe could block.
func readBounded(path string, limit int) (data []byte, written time.Time, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, written, nil
	}
	if err != nil {
		return nil, written, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, written, err
	}
	if !info.Mode().IsRegular() {
		return nil, written, fmt.Errorf("%s is not a regular file; delete it", path)
	}
	data, err = io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err != nil {
		return nil, written, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > limit {
		return data[:limit], written, fmt.Errorf("%s has more than %d bytes: %w", path, limit, errLarge)
	}
	return data, info.ModTime(), nil
}

// Replace replaces a file in one step: readers see the old or the new content.
func Replace(path string, data []byte) error { return Put(path, data, os.Rename) }

// Put writes a file completely or not at all, with mode 0600. put is [os.Rename], which replaces a file, or
// [os.Link], which does not.
func Put(path string, data []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return put(f.Name(), path)
}

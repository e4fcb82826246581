package shimstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A format says how a value of type T is stored.
type format[T any] struct {
	// name names the value in errors, such as "the agent's flags".
	name string
	// limit is the size limit of the file, in bytes.
	limit  int
	decode func(data []byte) (T, error)
	encode func(v T) ([]byte, error)
}

// jsonFormat stores values as JSON.
func jsonFormat[T any](name string, limit int) format[T] {
	return format[T]{
		name:  name,
		limit: limit,
		decode: func(data []byte) (T, error) {
			var v T
			err := schema.Unmarshal(data, &v)
			return v, err
		},
		encode: func(v T) ([]byte, error) { return schema.Marshal(v) },
	}
}

// A file is a state file, which holds one value. A writer locks it and replaces it as a whole, so that
// readers need no lock: they see the value before or after the change.
type file[T any] struct {
	format[T]

	path string
	// lock is the path of the lock file of the writers.
	lock string
	// expiry is the age at which [file.update] removes this file and those beside it; 0: never.
	expiry time.Duration
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

// update locks the file, and stores the value if change reports that it changed it. A file that
// cannot be read counts as empty, and is replaced.
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

const (
	// tempPrefix begins the names of files that are being written.
	tempPrefix = ".new-"
	// tempExpiry is the age at which the writer of such a file has died.
	tempExpiry = time.Minute
)

// expire removes JSON files of a folder that were not written for age, and what writers that died left.
// The caller holds the lock.
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

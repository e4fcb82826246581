package builtin

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// An appender appends lines to a file that other processes and hooks may append to as
// well. Each line is one write under a lock on the file, so that no line is torn and the
// file is rotated once.
type appender struct {
	path  string
	limit int64 // 0: never rotated
	keep  int

	mu   sync.Mutex // guards file
	file *os.File
}

// append appends one line. If it returns an error, the file is unchanged.
func (a *appender) append(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, size, err := a.locked(int64(len(line)))
	if err != nil {
		return fmt.Errorf("opening the audit log %s: %w", a.path, err)
	}
	defer unlock(f)
	if _, err := f.Write(line); err != nil {
		// Truncate removes a torn line, which would spoil the next one. It works on a
		// full disk.
		return fmt.Errorf("writing the audit log %s: %w", a.path, errors.Join(err, f.Truncate(size)))
	}
	return nil
}

// locked opens and locks the file, and rotates it if n more bytes would exceed the limit.
// It returns the file and its size.
func (a *appender) locked(n int64) (*os.File, int64, error) {
	for {
		if err := a.open(); err != nil {
			return nil, 0, err
		}
		if err := syscall.Flock(int(a.file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, 0, err
		}
		size, current, err := a.look()
		if err == nil && current && a.limit > 0 && size > 0 && size+n > a.limit {
			err, current = a.rotate(), false
		}
		if err == nil && current {
			return a.file, size, nil
		}
		unlock(a.file)
		if err != nil {
			return nil, 0, err
		}
		_ = a.shut() // this process or another one has rotated it
	}
}

// open opens the file, unless it is open.
func (a *appender) open() error {
	if a.file != nil {
		return nil
	}
	// With O_NONBLOCK, opening a pipe without a reader fails instead of blocking.
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err == nil {
		a.file = f
	}
	return err
}

// look returns the size of the open file, and whether it is still the one at the path.
func (a *appender) look() (size int64, current bool, err error) {
	mine, err := a.file.Stat()
	if err != nil {
		return 0, false, err
	}
	if !mine.Mode().IsRegular() {
		return 0, false, errors.New("it is not a regular file")
	}
	there, err := os.Stat(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	return mine.Size(), err == nil && os.SameFile(mine, there), err
}

// rotate renames the file and each older one. The oldest one is overwritten.
func (a *appender) rotate() error {
	if a.keep == 0 {
		return os.Remove(a.path)
	}
	for i := a.keep; i > 1; i-- {
		if err := os.Rename(a.numbered(i-1), a.numbered(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(a.path, a.numbered(1))
}

func (a *appender) numbered(i int) string { return a.path + "." + strconv.Itoa(i) }

// close closes the file. A later append opens it again.
func (a *appender) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shut()
}

func (a *appender) shut() error {
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return f.Close()
}

// unlock releases the lock. Closing the file releases it as well.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

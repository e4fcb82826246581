package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/chown"
)

const (
	// minRoom is the least free space for a start, newRoom that for a server without data, whose
	// first streams must fit.
	minRoom = 64 << 20
	newRoom = 240 << 20
	// storeFolder is the folder of the server's store in the data directory.
	storeFolder = "nats"
)

// A dirLock locks a data directory. The kernel releases the lock at any end of the process, so it is never
// stale.
type dirLock struct{ file *os.File }

// lockDir creates dir if needed and locks it for this process.
func lockDir(dir string) (*dirLock, error) {
	if dir == "" {
		return nil, errors.New("the embedded NATS server needs a data directory; name one with --data")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data directory %s: %w; name another one", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "broker.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the data directory %s: %w; make it writable, or name another one", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another broker (process %[2]s) uses the data directory %[1]s; stop that broker, or name another directory",
				dir, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("cannot lock the data directory %s: %w; name one on a local disk", dir, err)
	}
	l := &dirLock{f}
	if err := l.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write to the data directory %s: %w", dir, err), l.release())
	}
	return l, nil
}

// checkFolders rejects data that other users of the machine can replace, because a forged realm would
// admit them, and a forged store has their hooks. Kubernetes may mount volumes with such modes, which a
// container without root cannot change, so a mounted volume is only logged.
func (o *Options) checkFolders() error {
	if o.Dir == "" {
		return nil // lockDir returns the error
	}
	// Some file systems, such as network shares, give new folders to another user or to all users. The
	// first start must find that, and not a later one with data.
	_ = os.MkdirAll(o.Dir, 0o700) // lockDir reports the error
	store := filepath.Join(o.Dir, storeFolder)
	for _, dir := range []string{o.Dir, store, filepath.Join(store, server.JetStreamStoreDir), o.Auth} {
		if dir == "" {
			continue
		}
		err := chown.GuardedFolder(dir)
		_, unreadable := errors.AsType[*fs.PathError](err)
		switch {
		case err == nil || unreadable: // the code that uses the folder returns the error
		case chown.MountPoint(o.Dir), chown.MountPoint(dir):
			cmp.Or(o.Logger, slog.New(slog.DiscardHandler)).Warn("the data directory is a volume, and other users may replace what is in it", "error", err)
		default:
			return fmt.Errorf("the data of the broker is not protected: %w, or name another data directory", err)
		}
	}
	return nil
}

// sign writes the process id into the lock, for people.
func (l *dirLock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release releases the lock; a second call does nothing.
func (l *dirLock) release() error {
	if err := l.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// checkRoom returns how many bytes the store under dir may have: its present size and the free space,
// without a reserve that keeps the disk from filling up. Less free space than least is an error.
func checkRoom(dir string, least int64) (int64, error) {
	free, err := freeSpace(dir)
	if err != nil {
		return 0, err
	}
	if free < least {
		return 0, fmt.Errorf("the disk of the data directory %s has %d MiB left; free at least %d MiB or name another directory",
			dir, free>>20, least>>20)
	}
	used, err := sizeOf(dir)
	if err != nil {
		return 0, fmt.Errorf("cannot read the data directory %s: %w", dir, err)
	}
	return free - free/20 + used, nil
}

// freeSpace returns how many bytes of the disk of a folder are free for this user.
func freeSpace(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("cannot read the free space of %s: %w", dir, err)
	}
	return int64(disk.Bavail) * int64(disk.Bsize), nil //nolint:unconvert // Bsize has another type on other systems
}

// leastRoom returns the free space that a start needs. A leaf stores nothing, and with MaxStore the
// caller knows how much it needs.
func (o *Options) leastRoom() int64 {
	_, err := os.Stat(filepath.Join(o.Dir, storeFolder))
	keeps := o.Leaf == nil || len(o.Leaf.Remotes) == 0
	if errors.Is(err, fs.ErrNotExist) && keeps && o.MaxStore == 0 {
		return newRoom
	}
	return minRoom
}

// sizeOf returns the size of all files below dir. It ignores files that are deleted at the same time, as
// a server that has just ended may do.
func sizeOf(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}

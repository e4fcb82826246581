package realm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// lockTime bounds the wait for another change, lockAgain is the interval of attempts.
	lockTime  = 10 * time.Second
	lockAgain = 20 * time.Millisecond
)

// locked calls do with the folder locked.
func locked(ctx context.Context, dir string, do func() error) (err error) {
	f, err := lockFile(dir)
	if err != nil {
		return fmt.Errorf("cannot change the folder %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which releases the lock
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	again := time.NewTicker(lockAgain)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return do()
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("cannot lock the folder %s: %w; put it on a local disk", dir, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("another process is changing the folder %s: %w; try again", dir, context.Cause(ctx))
		}
	}
}

// lockFile opens or creates the lock file.
func lockFile(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := chown.LikeFolder(f); err != nil { // a broker of another user must be able to open it
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeFolder creates a private folder and its missing parents.
func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if above := filepath.Dir(dir); above != dir {
		if err := makeFolder(above); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return os.MkdirAll(dir, 0o700) // another process was faster, or it is no folder
	}
	if err != nil {
		return err
	}
	return chown.FolderLikeFolder(dir)
}

// change reads the realm, changes it and writes it, with the folder locked.
func change(ctx context.Context, dir string, do func(*Realm) error) error {
	if _, err := Read(dir); err != nil {
		return err // before a lock file is made in a folder without a realm
	}
	return locked(ctx, dir, func() error {
		r, err := Read(dir)
		if err == nil {
			err = do(r)
		}
		if err != nil {
			return err
		}
		return r.write()
	})
}

// write replaces the realm's file, if the realm is sound.
func (r *Realm) write() error {
	if err := r.sound(); err != nil {
		return err
	}
	data, err := schema.Marshal(r)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(r.dir, fileName), append(data, '\n'))
}

// WriteFile replaces a file atomically with one that only its owner may read. A file that root writes gets
// the owner of the old file, or of the folder.
func WriteFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = chown.Instead(f, path) // before the rename, so that the owner can always read the file
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir syncs the names in a folder to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

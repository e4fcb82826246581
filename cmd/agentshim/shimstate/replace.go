package shimstate

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace replaces a file, so that its readers see it before or after.
func Replace(path string, data []byte) error { return Put(path, data, os.Rename) }

// Put writes a file whole, or not at all, with the mode 0600; put is how the new
// one takes its place.
func Put(path string, data []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
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

package shimstate

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace replaces a file in one step: readers see the old or the new content.
func Replace(path string, data []byte) error { return Put(path, data, os.Rename) }

// Put writes a file completely or not at all, with mode 0600. put moves the new file to its path:
// [os.Rename] replaces a file, [os.Link] fails if there is one.
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

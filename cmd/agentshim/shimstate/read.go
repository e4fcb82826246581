package shimstate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// errLarge says that a file is larger than any that a shim writes.
var errLarge = errors.New("agentshim never writes that much; delete the file")

// bounded reads a file that is not larger than that; nil: there is none. Of one
// that is, the beginning is there beside the error. What is no file is an error at
// once: reading it might wait for ever.
func bounded(path string, most int) (data []byte, written time.Time, err error) {
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
	data, err = io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err != nil {
		return nil, written, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > most {
		return data[:most], written, fmt.Errorf("%s has more than %d bytes: %w", path, most, errLarge)
	}
	return data, info.ModTime(), nil
}

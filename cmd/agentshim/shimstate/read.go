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

// errLarge says that a file is larger than the files that agentshim writes.
var errLarge = errors.New("agentshim never writes that much; delete the file")

// readBounded reads a file up to limit bytes, and returns when it was written. The data of a missing file is
// nil. If the file is larger, its beginning is returned with the error. Anything but a regular file is an
// error, because reading a pipe could block.
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

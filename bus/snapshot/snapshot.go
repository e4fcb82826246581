package snapshot

import (
	"context"
	"errors"
	"io"
)

// The bounds of a snapshot.
const (
	// MaxBytes is the most that the files of a snapshot may have together.
	MaxBytes = 256 << 20
	// MaxFiles is how many files and folders it may have.
	MaxFiles = 10_000
)

var errNotBuilt = errors.New("not built yet")

// Pack writes the folder dir to w, always the same bytes for the same content.
// Links out of the folder are not followed.
func Pack(ctx context.Context, dir string, w io.Writer) error { return errNotBuilt }

// Unpack makes dir what the snapshot holds, whole or not at all. Nothing is
// written outside of dir, whatever the snapshot says.
func Unpack(ctx context.Context, r io.Reader, dir string) error { return errNotBuilt }

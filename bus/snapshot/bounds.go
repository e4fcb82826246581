package snapshot

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Others is the folder in which agents' sides unpack what others share. It is in
// no snapshot: else each would hold all that came before it.
const Others = "temp_workspaces"

// The bounds of a snapshot.
const (
	// MaxBytes is the most that the files of a snapshot may have together.
	MaxBytes = 256 << 20
	// MaxFiles is how many files and folders it may have.
	MaxFiles = 10_000
	// MaxDepth is how many folders may lie in one another.
	MaxDepth = 100

	// maxPath bounds a path in the folder, and where a link points to.
	maxPath = 4096
	// maxOverhead is what an archive may have beside the files' content, for
	// each of them: its headers, and what fills its last block.
	maxOverhead = 3*maxPath + 2048
)

var (
	// ErrTooLarge says that a folder or a snapshot is beyond the bounds.
	ErrTooLarge = errors.New("the folder is too large for a snapshot")
	// ErrBad says that an archive is not one that [Pack] wrote.
	ErrBad = errors.New("the snapshot cannot be unpacked")
)

// errDeep is about a path that is beyond the bounds.
func errDeep(name string) error {
	return fmt.Errorf("%w: %.200q lies in more than %d folders, or its path has more than %d bytes; share a folder that lies deeper",
		ErrTooLarge, name, MaxDepth, maxPath)
}

// deep reports whether a path is beyond the bounds.
func deep(name string) bool {
	return len(name) > maxPath || strings.Count(name, "/") > MaxDepth
}

// inside returns where a link called name points to in its shortest form, if
// that is inside of the folder. Dots stand at the front only, where they are
// about real folders: so no link can be led out of the folder by another one.
func inside(name, target string) (string, bool) {
	if target == "" || path.IsAbs(target) || len(target) > maxPath {
		return "", false
	}
	target = path.Clean(target)
	to := path.Join(path.Dir(name), target)
	return target, to != ".." && !strings.HasPrefix(to, "../")
}

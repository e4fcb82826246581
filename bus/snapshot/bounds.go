package snapshot

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Others is the folder in which shims unpack shared folders. Snapshots leave it out, because they would otherwise
// contain all earlier snapshots.
const Others = "temp_workspaces"

// The limits of a snapshot.
const (
	// MaxBytes limits the size of all files.
	MaxBytes = 256 << 20
	// MaxFiles limits the number of files and folders.
	MaxFiles = 10_000
	// MaxDepth limits the nesting of folders.
	MaxDepth = 100

	// maxPath limits a path in the folder, and the target of a link.
	maxPath = 4096
	// maxOverhead limits the bytes of an archive besides contents, per file: headers and padding.
	maxOverhead = 3*maxPath + 2048
)

var (
	// ErrTooLarge means that a folder or a snapshot exceeds a limit.
	ErrTooLarge = errors.New("the folder is too large for a snapshot")
	// ErrBad means that [Pack] did not write the archive.
	ErrBad = errors.New("the snapshot cannot be unpacked")
)

// errDeep is the error of a path that exceeds a limit.
func errDeep(name string) error {
	return fmt.Errorf("%w: %.200q lies in more than %d folders, or its path has more than %d bytes; share a folder that lies deeper",
		ErrTooLarge, name, MaxDepth, maxPath)
}

// deep reports whether a path exceeds a limit.
func deep(name string) bool {
	return len(name) > maxPath || strings.Count(name, "/") > MaxDepth
}

// inside returns the shortest form of the target of a link called name, if it is inside of the folder. It has .. only at
// the front, where it refers to real folders, so that another link cannot lead it out of the folder.
func inside(name, target string) (string, bool) {
	if target == "" || path.IsAbs(target) || len(target) > maxPath {
		return "", false
	}
	target = path.Clean(target)
	to := path.Join(path.Dir(name), target)
	return target, to != ".." && !strings.HasPrefix(to, "../")
}

package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// maxLooks is how many paths of a text are looked for on the disk.
const maxLooks = 20_000

// pathWord is what may be a path in a text, after an option that it may follow.
var pathWord = regexp.MustCompile("(^|[\\s\"'`(<\\[{=:,;|@])(-[A-Za-z]+)?([^\\s\"'`()<>\\[\\]{}=:,;|@]*/[^\\s\"'`()<>\\[\\]{}=:,;|]*)")

// calledBy is text with folder called by that absolute path, where the text names
// it by another: through a symbolic link, or relative to where we are.
func calledBy(text, folder string) string {
	info, err := os.Stat(folder)
	if err != nil {
		return text // packing it says what is wrong
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil && real != folder {
		text = schema.MoveFolder(text, real, folder)
	}
	seen := map[string]bool{} // by path: whether it is the folder
	is := func(path string) bool {
		same, ok := seen[path]
		if !ok && len(seen) < maxLooks {
			other, err := os.Stat(path)
			same = err == nil && os.SameFile(info, other)
			seen[path] = same
		}
		return same
	}
	return pathWord.ReplaceAllStringFunc(text, func(word string) string {
		m := pathWord.FindStringSubmatch(word)
		path, before := m[3], m[1]+m[2]
		for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
			name := strings.TrimRight(path[:end], "./")
			if name != "" && filepath.Base(name) != ".." && is(name) {
				return before + folder + path[len(name):]
			}
		}
		return word
	})
}

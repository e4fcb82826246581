package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// maxLooks bounds the paths of a text that are looked up on the disk.
const maxLooks = 20_000

// pathWord matches words that may be a path, with an option such as -I before it.
var pathWord = regexp.MustCompile("(^|[\\s\"'`(<\\[{=:,;|@])(-[A-Za-z]+)?([^\\s\"'`()<>\\[\\]{}=:,;|@]*/[^\\s\"'`()<>\\[\\]{}=:,;|]*)")

// calledBy replaces other paths of a folder in a text, relative ones and those through symbolic
// links, with folder, its absolute path.
func calledBy(text, folder string) string {
	info, err := os.Stat(folder)
	if err != nil {
		return text // packing reports the error
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

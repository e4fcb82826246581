package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 64

// A place is where a path leads: absolute, without dots and links, as far as
// there is something.
type place struct {
	path string
	// known are what is there of it, itself and the folders above, so that
	// another name of the same folder is seen to be the same.
	known []fs.FileInfo
}

func (p place) String() string { return p.path }

// windowsPath is a path that only another system can tell.
var windowsPath = regexp.MustCompile(`^[A-Za-z]:|\\`)

// unreadable says why nobody can tell which file a path names; empty: it can be
// told.
func unreadable(path string) string {
	switch {
	case path == "":
		return "is empty"
	case strings.TrimSpace(path) != path:
		return "begins or ends with a space"
	case strings.ContainsRune(path, 0):
		return "has a zero in it"
	case strings.HasPrefix(path, "~"), strings.HasPrefix(path, "$"):
		return "begins with something that a shell replaces"
	case strings.Contains(path, "://"):
		return "is a URL"
	case filepath.Separator == '/' && windowsPath.MatchString(path):
		return "is written for another system"
	}
	return ""
}

// absolute is the path that a tool means in the folder cwd, with its dots.
func absolute(path, cwd string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "file://"); ok {
		u, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost"))
		if err != nil || !filepath.IsAbs(u) {
			return "", errors.New("is a URL of no file here")
		}
		path = u
	}
	if why := unreadable(path); why != "" {
		return "", errors.New(why)
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	if !filepath.IsAbs(cwd) {
		return "", errors.New("is relative, and nobody said to which folder; write an absolute path")
	}
	return strings.TrimRight(cwd, "/") + "/" + path, nil
}

// placesOf are the places that an absolute path may mean. Systems follow a link
// before they go up from it, and many programs take the dots out first. Who
// writes may also mean the link itself.
func placesOf(path string, write bool) (out []place, linked bool, err error) {
	clean := filepath.Clean(path)
	add := func(path, name string) {
		to, through, failed := follow(path)
		to, linked = filepath.Join(to, name), linked || through
		if failed != nil {
			err = fmt.Errorf("can not be followed: %w", failed)
		} else if !slices.ContainsFunc(out, func(o place) bool { return o.path == to }) {
			out = append(out, placeAt(to))
		}
	}
	add(path, "")
	add(clean, "")
	if write && clean != "/" {
		add(filepath.Dir(clean), filepath.Base(clean))
	}
	return out, linked, err
}

// placeAt is the place of a path without dots and links.
func placeAt(path string) place {
	p := place{path: path}
	for at := path; ; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil {
			p.known = append(p.known, info)
		}
		if at == filepath.Dir(at) {
			return p
		}
	}
}

// follow is where an absolute path leads, and whether it leads through a link.
// What is not there is taken by its name.
func follow(path string) (to string, linked bool, err error) {
	to, rest := "/", strings.Split(path, "/")
	links := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			to = filepath.Dir(to)
			continue
		}
		next := filepath.Join(to, name)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) || notFolder(err) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			to = next
			continue
		}
		if err != nil {
			return "", linked, err
		}
		if links++; links > maxLinks {
			return "", true, errors.New("too many symbolic links")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", true, err
		}
		linked = true
		if filepath.IsAbs(target) {
			to = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return to, linked, nil
}

// within reports whether p is root or below it.
func (p place) within(root place) bool {
	if below(p.path, root.path) {
		return true
	}
	if len(root.known) == 0 || !root.there() {
		return false
	}
	return slices.ContainsFunc(p.known, func(info fs.FileInfo) bool { return os.SameFile(info, root.known[0]) })
}

// there reports whether all of the place is there: known begins with itself.
func (p place) there() bool {
	return len(p.known) == strings.Count(strings.TrimRight(p.path, "/"), "/")+1
}

// below reports whether path is root or below it, by their names.
func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimRight(root, "/")+"/")
}

// A root is a place as a configuration names it.
type root struct {
	place
	// named is its absolute path before any link was followed.
	named, written string
}

func (r root) same(other root) bool { return r.path == other.path }

// rootsAt are roots, relative ones in base.
func rootsAt(written []string, base string) (out []root, err error) {
	for _, w := range written {
		path := w
		if !filepath.IsAbs(path) {
			if !filepath.IsAbs(base) {
				return nil, fmt.Errorf("the root %q is relative, and the event does not say to which folder", w)
			}
			path = filepath.Join(base, path)
		}
		to, _, err := follow(path)
		if err != nil {
			return nil, fmt.Errorf("the root %q can not be followed: %w", w, err)
		}
		out = append(out, root{placeAt(to), filepath.Clean(path), w})
	}
	return out, nil
}

// deepest is how deep down the deepest of the roots is that p is within; 0: it
// is in none.
func deepest(roots []root, p place) (depth int) {
	for _, root := range roots {
		if p.within(root.place) {
			depth = max(depth, 1+strings.Count(strings.TrimRight(root.path, "/"), "/"))
		}
	}
	return depth
}

// notFolder reports whether a path goes on below a file, where nothing is.
func notFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

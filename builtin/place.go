package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 64

// A place is what a path resolves to: absolute, without dots and links, as far as the
// path exists.
type place struct {
	path string
	// known has the existing file and the folders above it, to recognise the same folder
	// under another name.
	known []fs.FileInfo
	// folded caches the path as [folded] returns it; for a root it is set only if the
	// root does not exist yet. Empty: not computed yet.
	folded string
}

func (p place) String() string { return p.path }

// isOfWindows reports whether the path has the form of Windows, so that it cannot be
// resolved here.
func isOfWindows(path string) bool {
	letter := func(b byte) bool { return b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' }
	return strings.Contains(path, `\`) || len(path) > 1 && path[1] == ':' && letter(path[0])
}

// isFileURL reports whether programs read a path as the URL of a file.
func isFileURL(path string) bool {
	const scheme = "file:"
	return len(path) >= len(scheme) && strings.EqualFold(path[:len(scheme)], scheme)
}

// isReplaced reports whether some tools replace or strip a part of a non-empty path
// before they open it: a home, a variable, an @ before a file name, quotes.
func isReplaced(path string) bool {
	const quotes = "\"'`"
	first, last := path[0], path[len(path)-1]
	switch {
	case first == '~', first == '$', strings.IndexByte(quotes, first) >= 0, strings.IndexByte(quotes, last) >= 0:
		return true
	case first == '@' && len(path) > 1 && strings.IndexByte("/.~", path[1]) >= 0:
		return true
	}
	return strings.Contains(path, "${") || strings.Contains(path, "$(")
}

// unreadable returns why it is unclear which file a path names; empty: it is clear.
func unreadable(path string) string {
	switch {
	case path == "":
		return "is empty"
	case strings.TrimSpace(path) != path:
		return "begins or ends with a space"
	case strings.ContainsFunc(path, dropped):
		return "contains a control character, which tools can drop"
	case isReplaced(path):
		return "contains quotes, a variable or ~, which tools can replace"
	case strings.Contains(path, "://"), isFileURL(path):
		return "is a URL"
	case filepath.Separator == '/' && isOfWindows(path):
		return "has the form of another operating system"
	}
	return ""
}

// dropped reports whether tools may remove r from a path: a control character, or the
// byte order mark, which JavaScript trims.
func dropped(r rune) bool { return unicode.IsControl(r) || r == '\ufeff' }

// absolute returns the path that a tool in the folder cwd uses. Dots remain in it.
func absolute(path, cwd string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "file://"); ok {
		u, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost"))
		if err != nil || !filepath.IsAbs(u) || strings.ContainsAny(rest, "?#") {
			return "", errors.New("is a URL that names no file here")
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
		return "", errors.New("is relative, and the event names no folder for it; write an absolute path")
	}
	return strings.TrimRight(cwd, "/") + "/" + path, nil
}

// placesOf returns the places that an absolute path may mean. Systems follow a link
// before they go up from it, but many programs remove the dots first. A write may also
// replace the link itself.
func placesOf(path string, write bool) (out []place, linked bool, err error) {
	clean := filepath.Clean(path)
	add := func(path, name string) {
		to, through, failed := follow(path)
		to, linked = filepath.Join(to, name), linked || through
		if failed != nil {
			err = fmt.Errorf("cannot be resolved: %w", failed)
		} else if !slices.ContainsFunc(out, func(o place) bool { return o.path == to }) {
			out = append(out, placeAt(to))
		}
	}
	add(path, "")
	if clean != path {
		add(clean, "")
	}
	if write && clean != "/" {
		add(filepath.Dir(clean), filepath.Base(clean))
	}
	return out, linked, err
}

// placeAt returns the place of a path without dots and links.
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

// follow resolves an absolute path, and reports whether it contains a link. Parts that do
// not exist are kept by name.
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
		if isProcessView(next) {
			return "", linked, viewError(next)
		}
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
		if linked = true; inProcfs(to) {
			return "", true, viewError(next)
		}
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
	if len(root.known) == 0 || !root.exists() {
		return false
	}
	return slices.ContainsFunc(p.known, func(info fs.FileInfo) bool { return os.SameFile(info, root.known[0]) })
}

// exists reports whether the whole place exists: known then has all its parts.
func (p place) exists() bool {
	return len(p.known) == strings.Count(strings.TrimRight(p.path, "/"), "/")+1
}

// mayBe reports whether p may be a root that does not exist yet: some file systems ignore
// case or the forms of Unicode.
func (p *place) mayBe(r *root) bool {
	if r.folded == "" {
		return false
	}
	if p.folded == "" {
		p.folded = folded(p.path)
	}
	return below(p.folded, r.folded)
}

// folded returns a path as the most permissive file system compares it.
func folded(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(path) // for ASCII, Unicode folding does only this
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(path))
}

// below reports whether path is root or below it, by their names.
func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimRight(root, "/")+"/")
}

// A root is a place from the configuration.
type root struct {
	place
	// named is its absolute path before links were followed.
	named, written string
}

func (r root) same(other root) bool { return r.path == other.path }

// rootsAt resolves roots, relative ones in base.
func rootsAt(written []string, base string) (out []root, err error) {
	for _, w := range written {
		path := w
		if !filepath.IsAbs(path) {
			if !filepath.IsAbs(base) {
				return nil, fmt.Errorf("the root %q is relative, and the event names no folder for it", w)
			}
			path = filepath.Join(base, path)
		}
		to, _, err := follow(path)
		if _, view := errors.AsType[viewError](err); view {
			to, err = filepath.Clean(path), nil // such a root cannot exist
		}
		if err != nil {
			return nil, fmt.Errorf("resolving the root %q: %w", w, err)
		}
		at := placeAt(to)
		if !at.exists() {
			at.folded = folded(to)
		}
		out = append(out, root{at, filepath.Clean(path), w})
	}
	return out, nil
}

// deepest returns the depth of the deepest root that contains p; 0: no root does.
func deepest(roots []root, p place) (depth int) {
	for _, root := range roots {
		if p.within(root.place) {
			depth = max(depth, 1+strings.Count(strings.TrimRight(root.path, "/"), "/"))
		}
	}
	return depth
}

// notFolder reports whether a path continues below a file.
func notFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

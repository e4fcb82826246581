package install

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
)

// A Machine is where things lie.
type Machine struct {
	// Root is put before all paths of the system and of homes, to prepare an image;
	// empty: this machine as it is.
	Root string
	// Home is the user's folder, Dir the project's; both absolute.
	Home, Dir string
	// Env looks up the variables by which runtimes are told to look elsewhere.
	Env func(name string) string
	// OS is as [runtime.GOOS] names it.
	OS string
}

// An anchor is what a path begins at.
type anchor int

// The anchors; system is the file system's root.
const (
	system anchor = iota
	home
	folder
)

// A place is where a runtime looks for its configuration.
type place struct {
	anchor anchor
	path   string
	// darwin is the path on macOS; empty: the same.
	darwin string
	// env names the variable that may say another folder, below is the path in it.
	env, below string
	// toml: the file is not JSON.
	toml bool
	// reach says in which folders a project's file counts.
	reach reach
}

// A reach says from where a runtime finds a project's file.
type reach int

const (
	// here: it reads the file of the folder that it is started in.
	here reach = iota
	// rootOnly: it reads that of the git repository's root. Outside of one, as here.
	rootOnly
	// upward: it reads those of its folder and of all above, up to the repository's root.
	upward
)

func (m Machine) locate(p place) (string, error) {
	switch p.anchor {
	case folder:
		if m.Dir == "" {
			return "", errors.New("the current folder is unknown; change to the project's folder, and install again")
		}
		return m.inProject(p), nil
	case home:
		if dir := m.env(p.env); filepath.IsAbs(dir) {
			return filepath.Join(m.Root, dir, p.below), nil
		}
		if !filepath.IsAbs(m.Home) {
			return "", errors.New("the home folder is unknown; set HOME")
		}
		return filepath.Join(m.Root, m.Home, p.path), nil
	}
	switch {
	case m.OS == "windows":
		return "", fmt.Errorf("--managed is not supported on Windows; install with --user")
	case m.OS == "darwin" && p.darwin != "":
		return filepath.Join(m.Root, p.darwin), nil
	}
	return filepath.Join(m.Root, p.path), nil
}

// inProject is the file that counts in the project's folder, or would if it were there.
func (m Machine) inProject(p place) string {
	root := repository(m.Dir)
	if p.reach == rootOnly && root != "" {
		return filepath.Join(root, p.path)
	}
	if p.reach == upward {
		for dir := range foldersUp(m.Dir, root) {
			if _, err := os.Stat(filepath.Join(dir, p.path)); err == nil {
				return filepath.Join(dir, p.path)
			}
		}
	}
	return filepath.Join(m.Dir, p.path)
}

// repository is the root of the git repository that a folder is in; empty: it is in none.
func repository(dir string) string {
	for dir := range foldersUp(dir, "") {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
	}
	return ""
}

// foldersUp yields a folder and those above it, the last one being top, or the file system's
// root.
func foldersUp(dir, top string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && dir != top && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
	}
}

// Above is a project's file with our hooks in a folder above, which does not count in the
// project's folder itself; empty: there is none.
func Above(m Machine, name string) string {
	t, ok := runtimes()[name]
	if !ok || m.Dir == "" || t.places[Project].reach != here {
		return ""
	}
	for dir := range foldersUp(filepath.Dir(m.Dir), repository(m.Dir)) {
		up := m
		up.Dir = dir
		if f, err := Find(up, name, Project); err == nil && len(f.Hooks) > 0 && dir != filepath.Clean(m.Home) {
			return f.Path
		}
	}
	return ""
}

func (m Machine) env(name string) string {
	if name == "" || m.Env == nil {
		return ""
	}
	return m.Env(name)
}

// path is where the configuration of a request lies.
func (r *Request) path(t *runtime) (string, error) { return r.Machine.locate(t.places[r.Scope]) }

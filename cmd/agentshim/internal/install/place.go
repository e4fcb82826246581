package install

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
)

// A Machine holds the folders and variables that locate configurations.
type Machine struct {
	// Root is a prefix of all paths of the system and of homes, to prepare an image; empty: this machine.
	Root string
	// Home is the user's folder, Dir the project's. Both are absolute.
	Home, Dir string
	// Env looks up the variables that move a runtime's configuration.
	Env func(name string) string
	// OS is a value of [runtime.GOOS].
	OS string
}

// An anchor is the folder that a path is relative to.
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
	darwin string // the path on macOS; empty: the same path
	// env is the variable that may name another folder, and below is the path in that folder.
	env, below string
	toml       bool  // the file is not JSON
	reach      reach // determines in which folders a project's file applies
}

// A reach determines the folders from which a runtime finds a project's file.
type reach int

const (
	here     reach = iota // the runtime reads the file of the folder in which it starts
	rootOnly              // the runtime reads the file of the git repository's root, if there is one
	// upward: the runtime reads the files of its folder and of all above it, up to the repository's root.
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

// inProject returns the file that applies in the project's folder, which need not exist.
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

// repository returns the root of the git repository with a folder; empty: the folder is in no repository.
func repository(dir string) string {
	for dir := range foldersUp(dir, "") {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
	}
	return ""
}

// foldersUp yields a folder and those above it, up to top or the file system's root.
func foldersUp(dir, top string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && dir != top && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
	}
}

// Above returns a project's file with agentshim's hooks in a parent folder, which does not apply here.
func Above(m Machine, name string) string {
	if m.Dir == "" || of(name).places[Project].reach != here {
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

func (r *Request) path(t *runtime) (string, error) { return r.Machine.locate(t.places[r.Scope]) }

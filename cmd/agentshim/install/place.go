package install

import (
	"errors"
	"fmt"
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
}

func (m Machine) locate(p place) (string, error) {
	switch p.anchor {
	case folder:
		if m.Dir == "" {
			return "", errors.New("the project's folder is unknown; go there, and install again")
		}
		return filepath.Join(m.Dir, p.path), nil
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
		return "", fmt.Errorf("managed installations are not written on Windows yet; install with --user")
	case m.OS == "darwin" && p.darwin != "":
		return filepath.Join(m.Root, p.darwin), nil
	}
	return filepath.Join(m.Root, p.path), nil
}

func (m Machine) env(name string) string {
	if name == "" || m.Env == nil {
		return ""
	}
	return m.Env(name)
}

// path is where the configuration of a request lies.
func (r *Request) path(t *runtime) (string, error) { return r.Machine.locate(t.places[r.Scope]) }

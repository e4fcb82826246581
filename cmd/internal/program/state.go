package program

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// StateHome returns the default folder for the state of programs.
func StateHome() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hookfabric")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return stateIn(home)
}

func stateIn(home string) string { return filepath.Join(home, ".local", "state", "hookfabric") }

// OwnState returns a writable folder for the state of the user's programs: StateHome if the environment
// names a home, else the same folder in the home of the user database, else a folder in /run/user or
// /var/tmp that only the user can access; empty: there is no such folder.
func OwnState() string {
	home, _ := os.UserHomeDir()
	if named := filepath.IsAbs(home) || filepath.IsAbs(os.Getenv("XDG_STATE_HOME")); named && writable(StateHome()) {
		return StateHome()
	}
	uid := os.Geteuid()
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && filepath.IsAbs(u.HomeDir) && u.HomeDir != "/" && writable(stateIn(u.HomeDir)) {
		return stateIn(u.HomeDir)
	}
	return private(uid, "/run/user", "/var/tmp")
}

// private returns a folder that only the user can access: in runtime, where the system makes a folder
// per user, or in shared, where all users can write; empty: there is no such folder.
func private(uid int, runtime, shared string) string {
	if dir := filepath.Join(runtime, strconv.Itoa(uid)); owned(dir, uid) && writable(dir) {
		return filepath.Join(dir, "hookfabric")
	}
	dir := filepath.Join(shared, fmt.Sprintf("hookfabric-%d", uid))
	_ = os.Mkdir(dir, 0o700) // it may exist, and is checked below
	if owned(dir, uid) && writable(dir) {
		return dir
	}
	return ""
}

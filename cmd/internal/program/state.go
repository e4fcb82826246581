package program

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// StateHome is where the fabric's programs keep state unless told otherwise.
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

// OwnState is the folder for what a user's own programs keep: StateHome if that is the user's own and can be written,
// else the same in the home that the system knows for the user, else a folder for the user alone in
// /run/user or in /var/tmp. empty: there is none that can be written, and that is nobody else's.
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

// private is a folder for a user alone, where none of a home can be written. runtime holds a folder per user,
// which the system makes, and in shared everybody can write. empty: there is none.
func private(uid int, runtime, shared string) string {
	if dir := filepath.Join(runtime, strconv.Itoa(uid)); owned(dir, uid) && writable(dir) {
		return filepath.Join(dir, "hookfabric")
	}
	dir := filepath.Join(shared, fmt.Sprintf("hookfabric-%d", uid))
	_ = os.Mkdir(dir, 0o700) // it may be there, and is looked at below
	if owned(dir, uid) && writable(dir) {
		return dir
	}
	return ""
}

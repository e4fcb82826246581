package program

import (
	"os"
	"path/filepath"
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
	return filepath.Join(home, ".local", "state", "hookfabric")
}

// OwnState is StateHome if that is the user's own; empty: nobody says where the
// user is at home, and what lies elsewhere may be another's.
func OwnState() string {
	home, _ := os.UserHomeDir()
	if filepath.IsAbs(home) || filepath.IsAbs(os.Getenv("XDG_STATE_HOME")) {
		return StateHome()
	}
	return ""
}

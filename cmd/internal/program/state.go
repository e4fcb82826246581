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

//go:build unix

package shimstate

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// fullVar names the folder of a process that may write no byte into any file.
const fullVar = "KEPT_TEST_FULL"

// A full disk accepts new files but no content: a policy cannot be stored on it.
func TestAFolderOnAFullDiskCannotBeUsed(t *testing.T) {
	dir := os.Getenv(fullVar)
	if dir == "" {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), fullVar+"="+t.TempDir())
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := Folder(dir).Usable(); err != nil {
		t.Fatalf("a folder with room: %v", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
		t.Fatal(err)
	}
	if err := Folder(dir).Usable(); !errors.Is(err, ErrNowhere) {
		t.Errorf("%v, want ErrNowhere", err)
	}
}

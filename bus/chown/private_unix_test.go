//go:build unix

package chown_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/chown"
)

func TestOnlyTheOwnerAndItsGroupReachASecret(t *testing.T) {
	dir := t.TempDir()
	for mode := range fs.FileMode(0o1000) {
		path := filepath.Join(dir, fmt.Sprintf("%03o", mode))
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		err := chown.Private(path)
		if open := mode&0o007 != 0; open != (err != nil) {
			t.Errorf("mode %03o: %v", mode, err)
		}
		if open := mode&0o002 != 0; open != (chown.Guarded(path) != nil) {
			t.Errorf("mode %03o, of no secret: %v", mode, chown.Guarded(path))
		}
		if mode&0o007 != 0 && (!strings.Contains(fmt.Sprint(err), path) || !strings.Contains(err.Error(), "chmod 600 ")) {
			t.Errorf("mode %03o: %v says not what to do", mode, err)
		}
	}
}

// As Kubernetes puts a secret there: links to a file of another group, which is one of
// the process's.
func TestALinkToASecretCountsAsTheSecret(t *testing.T) {
	dir := t.TempDir()
	secret, link := filepath.Join(dir, "secret"), filepath.Join(dir, "link")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	for mode, private := range map[fs.FileMode]bool{0o440: true, 0o444: false} {
		if err := os.Chmod(secret, mode); err != nil {
			t.Fatal(err)
		}
		if err := chown.Private(link); (err == nil) != private {
			t.Errorf("mode %03o: %v", mode, err)
		}
	}
	if err := chown.Private(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := chown.Private(pipe); err != nil {
		t.Errorf("a pipe: %v", err)
	}
}

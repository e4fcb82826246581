package server_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/server"
)

// TestAServerStartsOnNothingThatOthersCanReplace, and on a new folder of a realm.
func TestAServerStartsOnNothingThatOthersCanReplace(t *testing.T) {
	t.Parallel()
	chmod := func(mode fs.FileMode, names ...string) func(dir string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(append([]string{dir}, names...)...), mode) }
	}
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"its own":                            {chmod(0o700), ""},
		"that others read":                   {chmod(0o755), ""},
		"that its group writes":              {chmod(0o770), ""},
		"that every user writes":             {chmod(0o777), "every user of this machine can replace the files in the folder DIR (mode 0777); run 'chmod go-w DIR', or name another data directory"},
		"that every user adds files to":      {chmod(0o777 | fs.ModeSticky), "every user of this machine can replace the files in the folder DIR "},
		"with a store that every user has":   {chmod(0o777, "nats"), "the folder DIR/nats "},
		"with streams that every user has":   {chmod(0o777, "nats", "jetstream"), "the folder DIR/nats/jetstream "},
		"with a realm that every user has":   {chmod(0o777, "auth"), "the folder DIR/auth "},
		"of another user":                    {func(dir string) error { return os.Chown(dir, 12345, -1) }, "the folder DIR belongs to user 12345, who can replace every file in it; "},
		"with a realm that another user has": {func(dir string) error { return os.Chown(filepath.Join(dir, "auth"), 12345, -1) }, "the folder DIR/auth belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(c.want, "12345") && os.Geteuid() != 0 {
				t.Skip("NOT TESTED: only root can give a folder to another user")
			}
			dir := t.TempDir()
			o := server.Options{Dir: dir, Auth: filepath.Join(dir, "auth")}
			if err := os.Rename(newRealm(t), o.Auth); err != nil {
				t.Fatal(err)
			}
			start := func() error {
				s, err := server.Start(t.Context(), o)
				if err != nil {
					return err
				}
				return s.Close(context.Background())
			}
			if err := errors.Join(start(), c.change(dir)); err != nil {
				t.Fatal(err)
			}
			if err := start(); c.want != "" {
				wantError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

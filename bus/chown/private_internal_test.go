//go:build unix

package chown

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

// fileOf is the information about a file of a group, with a mode.
type fileOf struct {
	mode fs.FileMode
	gid  uint32
	uid  uint32
}

func (fileOf) Name() string        { return "secret" }
func (fileOf) Size() int64         { return 6 }
func (f fileOf) Mode() fs.FileMode { return f.mode }
func (fileOf) ModTime() time.Time  { return time.Time{} }
func (fileOf) IsDir() bool         { return false }
func (f fileOf) Sys() any          { return &syscall.Stat_t{Gid: f.gid, Uid: f.uid} }

func TestAnotherGroupReachesNoSecret(t *testing.T) {
	const stranger = 1<<31 - 7 // a group that no test runs in
	root := os.Geteuid() == 0
	for name, c := range map[string]struct {
		file    fileOf
		private bool
	}{
		"root's group reads it":          {fileOf{mode: 0o440, gid: 0}, true},
		"the process's group reads it":   {fileOf{mode: 0o640, gid: uint32(os.Getegid())}, true},
		"another group reads it":         {fileOf{mode: 0o440, gid: stranger}, root},
		"another group's, for the owner": {fileOf{mode: 0o600, gid: stranger}, true},
		"root's group writes it":         {fileOf{mode: 0o660, gid: 0}, true},
		"another group writes it":        {fileOf{mode: 0o620, gid: stranger}, root},
		"root's, and everyone's":         {fileOf{mode: 0o604, gid: 0}, false},
	} {
		if err := (rule{bits: 0o7}).judge("secret", c.file); (err == nil) != c.private {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOtherUsersReplaceNoFileInAFolder(t *testing.T) {
	const stranger = 1<<31 - 7 // a user and a group that no test runs as
	self, group, root := uint32(os.Geteuid()), uint32(os.Getegid()), os.Geteuid() == 0
	for name, c := range map[string]struct {
		folder  fileOf
		guarded bool
	}{
		"of this user alone":                       {fileOf{0o700, group, self}, true},
		"that others read":                         {fileOf{0o755, group, self}, true},
		"that this user's group writes":            {fileOf{0o770, group, self}, true},
		"of root, that this process's group has":   {fileOf{0o770, group, 0}, true},
		"of root alone":                            {fileOf{0o755, 0, 0}, true},
		"that another group writes":                {fileOf{0o770, stranger, self}, root},
		"of this user, that every user writes":     {fileOf{0o777, group, self}, false},
		"of root, that every user writes":          {fileOf{0o777, 0, 0}, false},
		"that every user adds files to, as /tmp":   {fileOf{0o777 | fs.ModeSticky, 0, 0}, false},
		"of another user":                          {fileOf{0o700, group, stranger}, false},
		"of another user, and this user's group's": {fileOf{0o770, group, stranger}, false},
	} {
		if err := judgeFolder("folder", c.folder); (err == nil) != c.guarded {
			t.Errorf("a folder %s: %v", name, err)
		}
	}
}

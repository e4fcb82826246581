package chown

import (
	"fmt"
	"io/fs"
	"os"
)

// Private returns an error if other users of the machine can read or change a file that
// holds a secret: credentials, a key, a token. Its owner may, and its group may if it
// is root's or one of this process's, as with fsGroup of Kubernetes. Root is in all groups. Links are followed. Other
// kinds of files, such as pipes, pass, and so do all files on systems without such modes.
func Private(path string) error {
	return check(path, rule{bits: 0o7, can: "reach the secret in", mend: "chmod 600"})
}

// Guarded returns an error if other users of the machine can change a file, by the same rule. They may read it.
func Guarded(path string) error {
	return check(path, rule{bits: 0o2, can: "change", mend: "chmod go-w"})
}

// GuardedFolder returns an error if other users of the machine can put files into a folder, or
// replace the files in it. Its owner is this process's user or root, and its group may write
// by the rule of [Private]. A sticky bit does not help, since it allows new files.
func GuardedFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return judgeFolder(dir, info)
}

// judgeFolder checks a folder's owner, mode and group.
func judgeFolder(dir string, info fs.FileInfo) error {
	const write = 0o2
	uid, known := userOf(info)
	gid, _ := groupOf(info)
	mode, self := info.Mode().Perm(), os.Geteuid()
	switch {
	case !known:
		return nil
	case uid != self && uid != 0:
		return fmt.Errorf("the folder %s belongs to user %d, who can replace every file in it; run this program as that user instead of as user %d, or run 'chown -R %d %s'", dir, uid, self, self, dir)
	case mode&write != 0:
		return fmt.Errorf("every user of this machine can replace the files in the folder %s (mode %04o); run 'chmod go-w %s'", dir, mode, dir)
	case mode>>3&write != 0 && !ownGroup(gid):
		return fmt.Errorf("the group %d can replace the files in the folder %s (mode %04o), and this process is not in it; run 'chmod go-w %s', or give the folder a group of this user", gid, dir, mode, dir)
	}
	return nil
}

// A rule is what other users must not do with a file.
type rule struct {
	bits      fs.FileMode // of the three permission bits of other users
	can, mend string
}

func check(path string, r rule) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return r.judge(path, info)
}

// judge checks a file's mode and group.
func (r rule) judge(path string, info fs.FileInfo) error {
	gid, known := groupOf(info)
	mode := info.Mode().Perm()
	switch {
	case !known:
		return nil
	case mode&r.bits != 0:
		return fmt.Errorf("every user of this machine can %s %s (mode %04o); run '%s %s', or in Kubernetes set defaultMode: 0440", r.can, path, mode, r.mend, path)
	case mode>>3&r.bits != 0 && !ownGroup(gid):
		return fmt.Errorf("the group %d can %s %s (mode %04o), and this process is not in it; run '%s %s', or give the file a group of this user", gid, r.can, path, mode, r.mend, path)
	}
	return nil
}

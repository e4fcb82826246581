package action

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// path adds a path, in each folder that may be the working directory.
func (w *walker) path(s *scope, name string, access Access) {
	if rest, ok := strings.CutPrefix(name, "file://"); ok {
		if name = rest; !strings.HasPrefix(rest, "/") {
			_, rest, _ = strings.Cut(rest, "/")
			name = "/" + rest
		}
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
	}
	switch name {
	case "", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return
	}
	add := func(p string) { w.out.path(Path{Path: p, Access: access, Remote: s.remote}) }
	if absolute(name) || strings.HasPrefix(name, "$") {
		add(cleaned(name))
		return
	}
	folders := s.get("PWD")
	for _, folder := range folders.known {
		add(joined(folder.Str, name))
	}
	if folders.open || len(folders.known) == 0 {
		add(cleaned(name))
	}
}

// redirected adds the file or the host of a redirect.
func (w *walker) redirected(s *scope, r Redirect) {
	for _, network := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(r.Target, network); ok {
			host, _, _ := strings.Cut(rest, "/")
			w.out.host(hostName(host))
			return
		}
	}
	w.path(s, r.Target, r.Access)
}

// A fileCommand says which arguments of a command are paths.
type fileCommand struct {
	access Access
	// last is the access to the last operand; empty: that of the others.
	last Access
	// skip is the number of operands before the paths, such as the pattern of grep. Options with one of
	// the letters in unless give them instead.
	skip   int
	unless string
	// values are the letters of options with a value, long the names of such options.
	values string
	long   []string
	// remote means that host:path is on another host.
	remote bool
	// writes are options whose value is a path that is written, reads one that is read.
	writes, reads []string
}

// fileCommandOf returns what is known about a command.
func fileCommandOf(name string) (fileCommand, bool) {
	switch name {
	case "rm", "rmdir", "unlink", "srm", "trash", "trash-put", "del", "wipe":
		return fileCommand{access: DeleteAccess}, true
	case "shred":
		return fileCommand{access: DeleteAccess, values: "ns", long: []string{"iterations", "size"}}, true
	case "touch":
		return fileCommand{access: WriteAccess, values: "dt", long: []string{"date"}, reads: []string{"-r", "--reference"}}, true
	case "mkdir", "mkfifo", "mknod":
		return fileCommand{access: WriteAccess, values: "mZ", long: []string{"mode"}}, true
	case "truncate":
		return fileCommand{access: WriteAccess, values: "s", long: []string{"size"}, reads: []string{"-r", "--reference"}}, true
	case "tee", "sponge", "patch", "nano", "vim", "vi", "nvim", "emacs", "ed", "ex", "code", "mkswap", "wipefs", "fdisk", "parted", "sgdisk", "blkdiscard":
		return fileCommand{access: WriteAccess, reads: []string{"-i", "--input"}, values: "p"}, true
	case "chmod", "chown", "chgrp", "chattr", "setfacl", "chcon":
		return fileCommand{access: WriteAccess, skip: 1, reads: []string{"--reference"}}, true
	case "cp", "install":
		return fileCommand{access: ReadAccess, last: WriteAccess, values: "mogS", long: []string{"mode", "owner", "group", "suffix"}, writes: []string{"-t", "--target-directory"}}, true
	case "mv":
		return fileCommand{access: DeleteAccess, last: WriteAccess, values: "S", long: []string{"suffix"}, writes: []string{"-t", "--target-directory"}}, true
	case "ln", "link":
		return fileCommand{access: ReadAccess, last: WriteAccess, writes: []string{"-t", "--target-directory"}}, true
	case "scp", "rsync", "rclone":
		return fileCommand{access: ReadAccess, last: WriteAccess, values: "PceSFloJi", remote: true, reads: []string{"-i", "--files-from", "--include-from", "--exclude-from"}, long: []string{"rsh", "exclude", "include", "filter"}}, true
	case "cat", "tac", "less", "more", "bat", "batcat", "nl", "od", "xxd", "hexdump", "strings", "file", "stat", "ls", "tree", "du", "rev", "zcat", "bzcat", "xzcat", "base64", "base32",
		"md5sum", "sha1sum", "sha256sum", "sha512sum", "diff", "cmp", "comm", "wc", "uniq", "column", "fold", "readlink", "realpath", "gpg", "openssl", "jq", "yq":
		return fileCommand{access: ReadAccess, skip: programs(name), unless: "f", writes: []string{"-out", "--output"}, reads: []string{"-in"}}, true
	case "head", "tail":
		return fileCommand{access: ReadAccess, values: "nc", long: []string{"lines", "bytes"}}, true
	case "sort":
		return fileCommand{access: ReadAccess, values: "kStT", long: []string{"key", "field-separator"}, writes: []string{"-o", "--output"}}, true
	case "cut", "paste":
		return fileCommand{access: ReadAccess, values: "dfcb"}, true
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep":
		return fileCommand{access: ReadAccess, skip: 1, unless: "ef", values: "eABCmgtT", long: []string{"regexp", "include", "exclude", "exclude-dir", "glob", "type", "max-count"}, reads: []string{"-f", "--file"}}, true
	case "awk", "gawk", "mawk", "nawk":
		return fileCommand{access: ReadAccess, skip: 1, unless: "f", values: "Fv", reads: []string{"-f", "--file"}}, true
	case "zip":
		return fileCommand{access: ReadAccess}, true
	case "unzip":
		return fileCommand{access: ReadAccess, writes: []string{"-d"}}, true
	case "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd":
		return fileCommand{access: WriteAccess}, true
	case "curl":
		return fileCommand{writes: []string{"-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"}, reads: []string{"-T", "--upload-file", "-K", "--config", "-E", "--cert", "--key", "-b"}, skip: 1 << 20}, true
	case "wget":
		return fileCommand{writes: []string{"-O", "--output-document", "-o", "-P", "--directory-prefix"}, reads: []string{"-i", "--input-file", "--post-file", "--body-file"}, skip: 1 << 20}, true
	case "source", ".":
		return fileCommand{access: ExecuteAccess}, true
	case "echo", "true", "false", ":", "test", "[", "cd", "pushd", "popd", "export", "printf", "kill", "sleep", "date", "seq", "tr", "pwd", "which", "type", "basename", "dirname", "expr", "alias", "trap", "read", "eval":
		return fileCommand{skip: 1 << 20}, true
	}
	if strings.HasPrefix(name, "mkfs") {
		return fileCommand{access: WriteAccess, values: "tLUb"}, true
	}
	return fileCommand{}, false
}

// programs returns the number of operands that are no paths.
func programs(name string) int {
	if name == "jq" || name == "yq" || name == "openssl" {
		return 1
	}
	return 0
}

// paths adds the paths in the arguments of a command.
func (w *walker) paths(s *scope, name string, args []field) {
	switch name {
	case "dd":
		w.dd(s, args)
		return
	case "sed", "perl", "ruby":
		w.inPlace(s, name, args)
		return
	case "find", "fd", "fdfind":
		w.foundPaths(s, name, args)
		return
	case "tar":
		w.archive(s, args)
		return
	case "git":
		w.gitPaths(s, args)
		return
	}
	c, known := fileCommandOf(name)
	switch {
	case known:
		w.operands(s, c, args)
	case interpreterOf(name) != "":
		w.scriptFile(s, name, args)
	default:
		w.guessed(s, args)
	}
	if name == "curl" {
		w.uploads(s, args)
	}
}

// operands adds the operands of a known command, and the values of its options that are paths.
func (w *walker) operands(s *scope, c fileCommand, args []field) {
	options := prefix{short: c.values, long: c.long}
	var operands []string
	skip := c.skip
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		if arg == "--" {
			operands = append(operands, texts(args[i+1:])...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			operands = append(operands, arg)
			continue
		}
		if used := w.optionPath(s, c, args[i:]); used > 0 {
			i += used - 1
		} else {
			i += options.width(arg) - 1
		}
		if strings.ContainsAny(arg[1:2], c.unless) || arg == "--reference" || strings.HasPrefix(arg, "--reference=") || strings.HasPrefix(arg, "--regexp") {
			skip = 0
		}
	}
	operands = operands[min(skip, len(operands)):]
	for i, p := range operands {
		access := c.access
		if i > 0 && i == len(operands)-1 && c.last != "" {
			access = c.last
		}
		if !c.remote || !isRemoteFile(p) {
			w.path(s, p, access)
		}
	}
}

// optionPath adds the path in an option, and returns how many words the option takes; 0: it has no path.
func (w *walker) optionPath(s *scope, c fileCommand, args []field) int {
	for access, options := range map[Access][]string{WriteAccess: c.writes, ReadAccess: c.reads} {
		for _, option := range options {
			value, attached := strings.CutPrefix(args[0].text, option)
			switch {
			case !attached:
			case value == "" && len(args) > 1:
				w.path(s, args[1].text, access)
				return 2
			case strings.HasPrefix(option, "--") && strings.HasPrefix(value, "="):
				w.path(s, value[1:], access)
				return 1
			case !strings.HasPrefix(option, "--") && value != "":
				w.path(s, value, access)
				return 1
			}
		}
	}
	return 0
}

// isRemoteFile reports whether an argument of scp or rsync is on another host.
func isRemoteFile(p string) bool {
	host, _, ok := strings.Cut(p, ":")
	return ok && host != "" && !strings.Contains(host, "/")
}

// guessed adds the arguments of an unknown command that look like paths.
func (w *walker) guessed(s *scope, args []field) {
	for _, f := range args {
		arg := f.text
		if strings.HasPrefix(arg, "-") {
			_, value, ok := strings.Cut(arg, "=")
			if !ok {
				continue
			}
			arg = value
		}
		if looksLikePath(arg) {
			w.path(s, arg, ReadAccess)
		}
	}
}

// looksLikePath reports whether an argument is a path rather than a word or an address.
func looksLikePath(arg string) bool {
	switch {
	case strings.HasPrefix(arg, "file://"):
		return true
	case strings.Contains(arg, "://"), strings.ContainsAny(arg, "\n\t"), len(arg) > 4096:
		return false
	}
	return strings.HasPrefix(arg, "~") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") && arg != "." && arg != "..." || strings.Contains(arg, "/") && !strings.Contains(arg, " ")
}

// scriptFile adds the script of an interpreter, and the arguments that look like paths.
func (w *walker) scriptFile(s *scope, name string, args []field) {
	for i, f := range args {
		if codeOption(interpreterOf(name), f.text) || f.text == "-m" || f.text == "-" {
			break
		}
		if !strings.HasPrefix(f.text, "-") {
			if f.text != "eval" && f.text != "run" {
				w.path(s, f.text, ExecuteAccess)
			}
			args = args[i+1:]
			break
		}
	}
	w.guessed(s, args)
}

// dd adds the paths of dd.
func (w *walker) dd(s *scope, args []field) {
	for _, f := range args {
		if p, ok := strings.CutPrefix(f.text, "if="); ok {
			w.path(s, p, ReadAccess)
		} else if p, ok := strings.CutPrefix(f.text, "of="); ok {
			w.path(s, p, WriteAccess)
		}
	}
}

// inPlace adds the files of programs that change files with -i.
func (w *walker) inPlace(s *scope, name string, args []field) {
	access := ReadAccess
	for _, f := range args {
		if strings.HasPrefix(f.text, "--in-place") || strings.HasPrefix(f.text, "-") && !strings.HasPrefix(f.text, "--") && strings.Contains(f.text, "i") {
			access = WriteAccess
		}
	}
	c := fileCommand{access: access, values: "eEIlfn", long: []string{"expression", "file"}, skip: 1, unless: "ef"}
	if name != "sed" {
		if access == ReadAccess {
			w.scriptFile(s, name, args)
			return
		}
		c.skip = 0
		// The letters before the last one of a cluster such as -pie have no value.
		for i, f := range args {
			if codeOption(name, f.text) && i+1 < len(args) {
				args = slices.Concat(args[:i], args[i+2:])
				break
			}
		}
	}
	w.operands(s, c, args)
}

// foundPaths adds the folders that find searches, or deletes in.
func (w *walker) foundPaths(s *scope, name string, args []field) {
	if name != "find" {
		w.guessed(s, args)
		return
	}
	access := ReadAccess
	for i, f := range args {
		switch {
		case f.text == "-delete":
			access = DeleteAccess
		case (f.text == "-fprint" || f.text == "-fprintf" || f.text == "-fls" || f.text == "-fprint0") && i+1 < len(args):
			w.path(s, args[i+1].text, WriteAccess)
		}
	}
	folders := searched(args)
	if access == DeleteAccess {
		folders = found(args)
	}
	for _, f := range folders {
		w.path(s, f.text, access)
	}
}

// archive adds the paths of tar: the archive, the folder, and the members of a new archive.
func (w *walker) archive(s *scope, args []field) {
	var mode rune
	file, folder := "", "."
	var members []string
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		value := func() string {
			if i++; i < len(args) {
				return args[i].text
			}
			return ""
		}
		name, attached, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") && i > 0:
			members = append(members, arg)
		case !strings.HasPrefix(arg, "--"):
			for _, letter := range strings.TrimPrefix(arg, "-") {
				switch letter {
				case 'x', 'c', 'r', 'u', 't', 'A':
					mode = letter
				case 'f':
					file = value()
				case 'C':
					folder = value()
				case 'b', 'g', 'H', 'I', 'K', 'L', 'N', 'T', 'V', 'X', 'F':
					value()
				}
			}
		case name == "extract" || name == "get":
			mode = 'x'
		case name == "create" || name == "append" || name == "update":
			mode = 'c'
		case name == "file":
			file = cmp.Or(attached, file)
		case name == "directory":
			folder = cmp.Or(attached, folder)
		}
	}
	switch mode {
	case 'x':
		w.path(s, file, ReadAccess)
		w.path(s, folder, WriteAccess)
	case 'c', 'r', 'u':
		w.path(s, file, WriteAccess)
		for _, member := range members {
			if folder != "." && !absolute(member) {
				member = folder + "/" + member
			}
			w.path(s, member, ReadAccess)
		}
	default:
		w.path(s, file, ReadAccess)
	}
}

// gitPaths adds the files that git removes or changes in the working tree.
func (w *walker) gitPaths(s *scope, args []field) {
	if len(args) == 0 {
		return
	}
	switch args[0].text {
	case "rm":
		w.operands(s, fileCommand{access: DeleteAccess}, args[1:])
	case "mv":
		w.operands(s, fileCommand{access: DeleteAccess, last: WriteAccess}, args[1:])
	case "clean":
		operands := slices.DeleteFunc(slices.Clone(args[1:]), func(f field) bool { return strings.HasPrefix(f.text, "-") })
		if len(operands) == 0 {
			operands = []field{{text: "."}}
		}
		for _, f := range operands {
			w.path(s, f.text, DeleteAccess)
		}
	case "checkout", "restore":
		if i := slices.IndexFunc(args, func(f field) bool { return f.text == "--" }); i >= 0 {
			args = args[i:]
		} else if args[0].text == "checkout" {
			return // the arguments may be branches
		}
		w.operands(s, fileCommand{access: WriteAccess, values: "s", long: []string{"source"}}, args[1:])
	case "clone":
		if len(args) > 2 {
			w.guessed(s, args[2:])
		}
	}
}

// uploads adds the files that curl sends.
func (w *walker) uploads(s *scope, args []field) {
	for i, f := range args {
		value, ok := "", false
		for _, option := range []string{"--data-binary", "--data-urlencode", "--data-raw", "--data", "--form", "--json", "-d", "-F"} {
			switch rest, has := strings.CutPrefix(f.text, option); {
			case !has || option == "--data-raw":
			case rest == "" && i+1 < len(args):
				value, ok = args[i+1].text, true
			case rest != "":
				value, ok = strings.TrimPrefix(rest, "="), true
			}
			if ok {
				break
			}
		}
		if !ok {
			continue
		}
		if _, file, at := strings.Cut(value, "@"); at && (strings.HasPrefix(value, "@") || strings.Contains(value, "=@")) {
			file, _, _ = strings.Cut(file, ";")
			w.path(s, file, ReadAccess)
		}
	}
}

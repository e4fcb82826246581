package action

import (
	"slices"
	"strings"
)

// A prefix is a program that runs the command in its arguments, after its own options.
type prefix struct {
	// short are the letters of options with a value, long the names of such options.
	short string
	long  []string
	// positional is the number of arguments between the options and the command.
	positional int
	// assigns means that NAME=value may stand before the command.
	assigns bool
	// remote means that the command runs on another machine or in a container.
	remote bool
}

// width returns the number of words that an option takes.
func (p prefix) width(option string) int {
	if name, ok := strings.CutPrefix(option, "--"); ok {
		if !strings.Contains(name, "=") && slices.Contains(p.long, name) {
			return 2
		}
		return 1
	}
	if i := strings.IndexAny(option[1:], p.short); p.short != "" && i >= 0 && i == len(option)-2 {
		return 2
	}
	return 1
}

// prefixOf returns the prefix with a name.
func prefixOf(name string) (p prefix, ok bool) {
	switch name {
	case "sudo":
		return prefix{short: "ugpCrtThUDR", long: []string{"user", "group", "prompt", "close-from", "role", "type", "host", "other-user", "chdir", "chroot", "command-timeout"}, assigns: true}, true
	case "doas":
		return prefix{short: "uC"}, true
	case "env":
		return prefix{short: "uC", long: []string{"unset", "chdir"}, assigns: true}, true
	case "nohup", "setsid", "busybox", "toybox", "builtin", "noglob", "nocorrect", "catchsegv", "fakeroot", "unbuffer", "caffeinate", "proxychains", "proxychains4", "torsocks", "tsocks":
		return prefix{}, true
	case "command":
		return prefix{}, true
	case "exec":
		return prefix{short: "a"}, true
	case "time":
		return prefix{short: "fo", long: []string{"format", "output"}}, true
	case "timeout", "gtimeout":
		return prefix{short: "ks", long: []string{"kill-after", "signal"}, positional: 1}, true
	case "nice":
		return prefix{short: "n", long: []string{"adjustment"}}, true
	case "ionice":
		return prefix{short: "cn", long: []string{"class", "classdata"}}, true
	case "chrt":
		return prefix{short: "TPD", positional: 1}, true
	case "taskset":
		return prefix{positional: 1}, true
	case "stdbuf":
		return prefix{short: "ioe", long: []string{"input", "output", "error"}}, true
	case "chroot":
		return prefix{long: []string{"userspec", "groups"}, positional: 1}, true
	case "unshare":
		return prefix{short: "RwSG", long: []string{"root", "wd", "setuid", "setgid", "propagation"}}, true
	case "nsenter":
		return prefix{short: "tSG", long: []string{"target", "setuid", "setgid"}, remote: true}, true
	case "strace", "ltrace":
		return prefix{short: "abeEoOpPsSuX"}, true
	case "systemd-run":
		return prefix{short: "pMuHE", long: []string{"unit", "property", "description", "slice", "uid", "gid", "nice", "working-directory", "setenv", "machine", "host"}}, true
	case "runuser":
		return prefix{short: "ugG", long: []string{"user", "group"}}, true
	case "dbus-run-session", "xvfb-run":
		return prefix{short: "nse", long: []string{"server-num", "server-args", "error-file"}}, true
	}
	return prefix{}, false
}

// containerOptions are the options of docker and its relatives that have a value.
func containerOptions() prefix {
	return prefix{short: "veplwumhcn", long: []string{
		"volume", "env", "publish", "name", "workdir", "user", "network", "net", "entrypoint", "memory", "mount", "hostname", "label", "add-host", "device",
		"dns", "env-file", "ipc", "pid", "platform", "restart", "ulimit", "gpus", "cpus", "shm-size", "security-opt", "cap-add", "cap-drop", "runtime",
		"pull", "log-driver", "log-opt", "cpu-shares", "detach-keys", "index", "file", "project-name", "context", "host", "namespace", "container", "kubeconfig", "cluster", "tmpfs",
	}, remote: true}
}

// interpreterOf returns the language of an interpreter; empty: the program is none.
func interpreterOf(name string) string {
	switch strings.TrimRight(name, "0123456789.") {
	case "python", "pypy", "ipython":
		return "python"
	case "node", "nodejs", "deno", "bun", "tsx", "ts-node":
		return "javascript"
	case "perl", "ruby", "php", "lua", "luajit":
		return strings.TrimSuffix(strings.TrimRight(name, "0123456789."), "jit")
	case "Rscript":
		return "r"
	case "osascript":
		return "applescript"
	case "awk", "gawk", "mawk", "nawk":
		return "awk"
	}
	return ""
}

// isShell reports whether a program is a shell whose scripts are parsed.
func isShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash":
		return true
	}
	return false
}

// codeOption reports whether an option of an interpreter has code as its value.
func codeOption(language, option string) bool {
	switch language {
	case "python":
		return option == "-c" || len(option) > 2 && option[0] == '-' && option[1] != '-' && strings.HasSuffix(option, "c")
	case "javascript":
		return slices.Contains([]string{"-e", "--eval", "-p", "--print", "-pe"}, option)
	case "php":
		return slices.Contains([]string{"-r", "-B", "-R", "-E"}, option)
	case "perl", "ruby", "lua", "r", "applescript":
		return len(option) > 1 && option[0] == '-' && option[1] != '-' && strings.ContainsAny(option[len(option)-1:], "eE")
	}
	return false
}

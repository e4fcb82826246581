package install

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// shimName is what the shim's program is called, or begins with.
const shimName = "agentshim"

// defaultTimeout is how long runtimes wait unless told otherwise.
const defaultTimeout = time.Minute

// check refuses what could not work, or would give secrets away.
func (h *Hook) check(t *runtime) error {
	if h.Timeout == 0 {
		h.Timeout = defaultTimeout
	}
	// Most runtimes count in seconds.
	if whole := h.Timeout.Truncate(time.Second); whole != h.Timeout {
		h.Timeout = whole + time.Second
	}
	switch {
	case !filepath.IsAbs(h.Shim) || strings.ContainsAny(h.Shim, "\x00\n\r"):
		return fmt.Errorf("the path of agentshim is %q; it must be absolute, and one line", h.Shim)
	case !strings.HasPrefix(filepath.Base(h.Shim), shimName):
		return fmt.Errorf("the program is called %q; hooks are known again by its name, so let it begin with %s", filepath.Base(h.Shim), shimName)
	case h.Timeout < 2*time.Second || h.Timeout > time.Hour:
		return fmt.Errorf("--timeout is %s; write one from 2s to 1h", h.Timeout)
	case h.URL != "" && !t.http:
		return fmt.Errorf("%s takes no hooks over HTTP here; install without --http", t.label)
	case h.URL != "" && (h.NATS != "" || h.Creds != "" || h.State != "" || !h.TLS.Empty()):
		return errors.New("with --http it is the daemon that knows the bus; give --nats, --creds, --tls-… and --state to 'agentshim serve'")
	}
	for name, path := range map[string]string{"--creds": h.Creds, "--state": h.State, "--tls-ca": h.TLS.CA, "--tls-cert": h.TLS.Cert, "--tls-key": h.TLS.Key} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%s is %q; write an absolute path, since agents start in many folders", name, path)
		}
	}
	if h.URL != "" && !plainURL(h.URL) {
		return errors.New("--http must be a URL of a daemon on this machine and nothing else, such as http://127.0.0.1:7717")
	}
	if strings.Contains(h.NATS, "@") { // however it is written, and in a list, too
		return errors.New("--nats has a user or a password in it, which would lie readable in the configuration; write the URL without, and name a credentials file with --creds")
	}
	return nil
}

// plainURL reports whether a URL names a place on this machine, and no more: by
// what is added to it our hooks are known again.
func plainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && u.User == nil && loopback(u.Hostname()) && strings.Trim(u.Path, "/") == "" && u.RawQuery+u.Fragment == ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// arguments is the shim's command line at an event, without the program.
func (r *Request) arguments(e event) []string {
	h := &r.Hook
	args := []string{"hook", "--runtime", r.Runtime, "--event", e.name, "--timeout", strconv.Itoa(e.seconds(h)) + "s"}
	for _, f := range [][2]string{{"--agent", h.Agent}, {"--nats", h.NATS}, {"--creds", h.Creds}, {"--tls-ca", h.TLS.CA}, {"--tls-cert", h.TLS.Cert},
		{"--tls-key", h.TLS.Key}, {"--state", h.State}, {"--unreachable", h.Unreachable}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	if r.Scope == Managed {
		args = append(args, "--managed")
	}
	return args
}

// timeout is how long the runtime waits at an event, as it is told.
func (e event) timeout(h *Hook) time.Duration {
	if e.most > 0 {
		return min(e.most, h.Timeout)
	}
	return h.Timeout
}

func (e event) seconds(h *Hook) int { return int(e.timeout(h) / time.Second) }

// line is the command line for a runtime that gives it to a shell.
func (r *Request) line(e event) string {
	words := []string{quote(r.Hook.Shim)}
	for _, a := range r.arguments(e) {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// quote writes a word so that every POSIX shell takes it as it is.
func quote(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./:=,@%+", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// split takes a shell's command line apart, as far as plain words and quotes go.
// false: it is more than that, so it is none of ours.
func split(line string) (words []string, ok bool) {
	var word strings.Builder
	quoted, inside := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted == '\'' && c != '\'', quoted == '"' && c != '"' && c != '\\' && c != '$' && c != '`':
			word.WriteByte(c)
		case quoted != 0 && c == quoted:
			quoted = 0
		case quoted == 0 && (c == '\'' || c == '"'):
			quoted, inside = c, true
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inside = true
		case quoted == 0 && (c == ' ' || c == '\t'):
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		case strings.IndexByte(";&|<>()$`\n\\", c) >= 0:
			return nil, false
		default:
			word.WriteByte(c)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words, quoted == 0
}

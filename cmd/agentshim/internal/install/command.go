package install

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/schema"
)

const shimName = "agentshim"

// check returns an error if the hook could not work, would let calls pass when it fails, or expose secrets.
func (h *Hook) check(t *runtime, v probe.Version) error {
	if h.Timeout == 0 {
		h.Timeout = schema.RuntimeTimeout
	}
	// Most runtimes count in seconds.
	if whole := h.Timeout.Truncate(time.Second); whole != h.Timeout {
		h.Timeout = whole + time.Second
	}
	switch {
	case !filepath.IsAbs(h.Shim) || strings.ContainsAny(h.Shim, "\x00\n\r"):
		return fmt.Errorf("the path of agentshim is %q; write an absolute path on one line", h.Shim)
	case !strings.HasPrefix(filepath.Base(h.Shim), shimName):
		return fmt.Errorf("the program's name is %q; agentshim recognises its hooks by the name, so the name must begin with %s", filepath.Base(h.Shim), shimName)
	case h.Timeout < 2*time.Second || h.Timeout > time.Hour:
		return fmt.Errorf("--timeout is %s; write a duration from 2s to 1h", h.Timeout)
	case h.URL != "" && !t.http.Known():
		return fmt.Errorf("HTTP hooks of %s let calls pass when the daemon does not answer; install without --http, agentshim then asks the daemon", t.label)
	case h.URL != "" && v.Before(t.http):
		return fmt.Errorf("the version of %s is %s, and versions before %s let calls pass when an HTTP hook fails; update it, name its version with --runtime-version, or install without --http",
			t.label, v, t.http)
	case h.URL != "" && (h.NATS != "" || h.Creds != "" || h.State != "" || !h.TLS.Empty()):
		return errors.New("with --http, the daemon connects to the fabric; give --nats, --creds, --tls-… and --state to 'agentshim serve'")
	}
	for name, path := range map[string]string{"--creds": h.Creds, "--state": h.State, "--tls-ca": h.TLS.CA, "--tls-cert": h.TLS.Cert, "--tls-key": h.TLS.Key} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%s is %q; write an absolute path, because agents start in many folders", name, path)
		}
	}
	if h.URL != "" && !plainURL(h.URL) {
		return errors.New("--http must be the URL of a daemon on this machine, such as http://127.0.0.1:7717, with nothing after the port")
	}
	if strings.Contains(h.NATS, "@") { // in any form of the URL, and in a list, too
		return errors.New("--nats contains a user or a password, which others could read in the configuration; leave them out, and name a credentials file with --creds")
	}
	return nil
}

// plainURL reports whether a URL names only a port of this machine: its path identifies hooks of agentshim.
func plainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && u.User == nil && peer.IsLocal(u.Hostname()) && strings.Trim(u.Path, "/") == "" && u.RawQuery+u.Fragment == ""
}

// arguments returns the shim's command line at an event, without the program.
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

func (e event) timeout(h *Hook) time.Duration {
	if e.most > 0 {
		return min(e.most, h.Timeout)
	}
	return h.Timeout
}

func (e event) seconds(h *Hook) int { return int(e.timeout(h) / time.Second) }

// line returns the command line for a shell. open: the runtime lets the call pass if the hook cannot start, so
// the line itself refuses it. So does a project's line on machines without agentshim.
func (r *Request) line(e event, open bool) string {
	shim := Quote(r.Hook.Shim)
	words := []string{shim}
	for _, a := range r.arguments(e) {
		words = append(words, Quote(a))
	}
	command := strings.Join(words, " ")
	switch {
	case e.gate && (open || r.Scope == Project):
		return ifThere + shim + thenRun + command + elseSay + Quote(r.missing()) + andRefuse
	case r.Scope == Project:
		return unlessThere + shim + orRun + command
	}
	return command
}

// The parts of a command line for a missing program. They are the same in POSIX shells and in fish.
const (
	ifThere, thenRun, elseSay, andRefuse = "[ -x ", " ] && exec ", "; echo ", " >&2; exit 2"
	unlessThere, orRun                   = "[ ! -x ", " ] || exec "
)

// missing returns the reason that people and models read if the program is missing.
func (r *Request) missing() string {
	if r.Scope == Project {
		return fmt.Sprintf("The hooks of this project need agentshim at %s, where there is no such program. Install it there, or take the hooks out of the project.", r.Hook.Shim)
	}
	return fmt.Sprintf("There is no agentshim at %s, so the fabric cannot judge this. Put it back, or install the hooks again.", r.Hook.Shim)
}

// bare returns a command line without the parts for a missing program.
func bare(line string) string {
	command, rest := "", ""
	if inner, ok := strings.CutPrefix(line, ifThere); ok {
		_, command, _ = strings.Cut(inner, thenRun)
		at := strings.LastIndex(command, elseSay)
		if at < 0 || !strings.HasSuffix(command, andRefuse) {
			return line
		}
		command, rest = command[:at], command[at:]
	} else if inner, ok := strings.CutPrefix(line, unlessThere); ok {
		_, command, _ = strings.Cut(inner, orRun)
	}
	words, ok := split(command)
	if !ok || len(words) == 0 {
		return line
	}
	shim := Quote(words[0])
	if line == ifThere+shim+thenRun+command+rest || line == unlessThere+shim+orRun+command {
		return command
	}
	return line
}

// Quote quotes a word so that every POSIX shell takes it literally.
func Quote(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./:=,@%+", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// split splits a command line of plain and quoted words. ok is false if agentshim did not write it.
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

package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// variables are the variables of the worker's environment that a hook may use.
type variables struct {
	environ []string
	secrets []string // the values that were used, which must not be shown
}

func (v *variables) value(name string) (string, error) {
	for _, kv := range v.environ {
		if n, value, _ := strings.Cut(kv, "="); n == name && value != "" {
			v.secrets = append(v.secrets, value)
			return value, nil
		}
	}
	return "", fmt.Errorf("the worker's environment variable %s is unset or empty; set it in the worker's environment", name)
}

// header returns the headers of every request: the fabric's and the hook's.
func (v *variables) header(hook map[string]string) (http.Header, error) {
	header := http.Header{
		"Accept":       {"application/json"},
		"Content-Type": {"application/json"},
		"User-Agent":   {"hookfabric/" + schema.Release},
	}
	given := make(map[string]string, len(hook))
	for _, name := range slices.Sorted(maps.Keys(hook)) {
		key := http.CanonicalHeaderKey(name)
		if err := checkName(name); err != nil {
			return nil, err
		}
		if other, twice := given[key]; twice {
			return nil, fmt.Errorf("the headers %s and %s are the same header; keep one of them", other, name)
		}
		value, err := expand(hook[name], v.value)
		if err == nil {
			err = checkValue(value)
		}
		if err != nil {
			return nil, fmt.Errorf("the header %s: %w", name, err)
		}
		given[key], header[key] = name, []string{strings.Trim(value, " \t")}
	}
	return header, nil
}

// checkName rejects invalid names, and headers that a hook may not set.
func checkName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !isNameRune(c) }) {
		return fmt.Errorf("%q is not a header name; write letters, digits and -, such as X-Team", name)
	}
	instead := reserved(http.CanonicalHeaderKey(name))
	if instead == "" {
		return nil
	}
	return fmt.Errorf("a hook cannot set the header %s; %s", name, instead)
}

// isNameRune reports whether c is valid in a header's name: RFC 9110, section 5.6.2.
func isNameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

// reserved says what to write instead of a header that hooks do not set; empty:
// they do.
func reserved(key string) string {
	switch key {
	case "Host":
		return "write the host in the handler's URL"
	case "Content-Type", "Content-Length", "Content-Encoding", "Accept-Encoding":
		return "remove it: events and answers are plain JSON"
	case "Connection", "Proxy-Connection", "Keep-Alive", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect":
		return "remove it: the worker controls the connection"
	case "Proxy-Authorization", "Proxy-Authenticate":
		return "remove it: the worker uses no proxy"
	case "Traceparent", "Tracestate":
		return "remove it: the worker sends it with traced calls"
	case "Idempotency-Key", "X-Idempotency-Key":
		return "remove it, and let the server read " + schema.HeaderID + ", which is the same when a hook runs again"
	}
	if strings.HasPrefix(key, "Hook-") || strings.HasPrefix(key, "Hookfabric-") {
		return "choose a name that begins with neither Hook- nor Hookfabric-, which are the fabric's own"
	}
	return ""
}

// checkValue refuses what no header can carry. It does not repeat the value,
// which may be a secret.
func checkValue(value string) error {
	switch {
	case len(value) > schema.MaxHeader:
		return errLong
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return errors.New("its value contains a line break or another control character; write it, and its variables, as one line")
	}
	return nil
}

// parse parses the URL of a handler. Its errors do not contain possible secrets: a
// password, or the query.
func parse(handler string) (*url.URL, error) {
	u, err := url.Parse(handler)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(handler, "@"):
		return nil, errors.New(`the handler's URL contains a user or a password; remove it, and write a header such as Authorization: "Basic ${POLICY_LOGIN}"`)
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		shown, _, _ := strings.Cut(handler, "?")
		return nil, fmt.Errorf("the handler %q is not a server's URL; write one such as https://policy.example/hook", shown)
	case u.Hostname() == "":
		return nil, fmt.Errorf("the handler %q names no host; write a URL such as https://policy.example/hook", bare(u))
	case strings.Contains(handler, "#"):
		return nil, fmt.Errorf("the handler %q has a fragment, which clients do not send; remove the # and the text after it", bare(u))
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("the handler %q names the port %s; write one from 1 to 65535", bare(u), port)
		}
	}
	return u, nil
}

// bare returns u without possible secrets.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Opaque: u.Opaque, Path: u.Path, RawPath: u.RawPath}).String()
}

// isLoopback reports whether host is this machine, without a name lookup.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost")
}

var (
	errDollar = errors.New("its value has a $ without {NAME}; write ${NAME} for a variable, with letters, digits and _, or $$ for a dollar sign")
	errLong   = fmt.Errorf("its value has more than %d bytes; write a shorter value", schema.MaxHeader)
)

// expand replaces each ${NAME} in template by the variable's value, which is not expanded
// again, and each $$ by a dollar sign. Every other $ is an error, so that a misspelt
// secret is not sent as text.
func expand(template string, value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for b.Len() <= schema.MaxHeader {
		before, after, more := strings.Cut(template, "$")
		b.WriteString(before)
		if !more {
			return b.String(), nil
		}
		if rest, dollar := strings.CutPrefix(after, "$"); dollar {
			b.WriteByte('$')
			template = rest
			continue
		}
		name, rest, ok := cutName(after)
		if !ok {
			return "", errDollar
		}
		s, err := value(name)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		template = rest
	}
	return "", errLong
}

// cutName reads "{NAME}" and returns the rest.
func cutName(s string) (name, rest string, ok bool) {
	s, opened := strings.CutPrefix(s, "{")
	name, rest, closed := strings.Cut(s, "}")
	return name, rest, opened && closed && isVariable(name)
}

// isVariable reports whether name is a valid variable name for shells.
func isVariable(name string) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

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

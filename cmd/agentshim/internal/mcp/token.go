package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// TokenHeader is where a client may show the relay's token, instead of in the path.
const TokenHeader = "Hook-Token"

// wellKnown begins the paths of what servers tell everyone.
const wellKnown = "/.well-known/"

// admit returns a client's request without the relay's token, by which it was let in; nil:
// it showed none. Where the relay has no token it lets everyone in. What servers tell
// everyone is read without one: clients ask for it at paths of their own, and it goes
// with none of the headers that are lent.
func (x *Relay) admit(r *http.Request) *http.Request {
	if x.Token == "" {
		return r
	}
	in := r.Clone(r.Context())
	in.Header.Del(TokenHeader)
	if x.shows(r.Header.Get(TokenHeader)) {
		return in
	}
	public := r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, wellKnown) && path.Clean(r.URL.Path) == r.URL.Path
	for _, before := range []string{"/", wellKnown + "oauth-protected-resource/", wellKnown + "oauth-authorization-server/", wellKnown + "openid-configuration/"} {
		if at, ok := x.without(r.URL, before); ok {
			in.URL = at
			return in
		}
	}
	if public && !strings.HasPrefix(x.Target.Path, wellKnown) {
		return in
	}
	return nil
}

// without returns a URL without the token, if it stands in the path after the part that is given.
func (x *Relay) without(u *url.URL, before string) (*url.URL, bool) {
	rest, ok := strings.CutPrefix(u.Path, before)
	token, after, _ := strings.Cut(rest, "/")
	if !ok || !x.shows(token) {
		return nil, false
	}
	out := *u
	out.Path, out.RawPath = before+after, ""
	if raw, ok := strings.CutPrefix(u.RawPath, before+token+"/"); ok {
		out.RawPath = before + raw
	}
	return &out, true
}

// shows reports whether that is the token.
func (x *Relay) shows(token string) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(x.Token))
	return token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
